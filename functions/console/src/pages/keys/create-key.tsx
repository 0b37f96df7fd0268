import type { JSX } from "preact";
import { useEffect, useMemo, useState } from "preact/hooks";
import { type Body, post } from "../../api";
import { useAction } from "../../components/action";
import { Check } from "../../components/check";
import { Dialog } from "../../components/dialog";
import { ChoiceField, TextField } from "../../components/field";
import { Form } from "../../components/form";
import { ApiError, toApiError } from "../../errors";
import { may } from "../../session";
import { nameOfKey, type Scope, SCOPES } from "../steer/key-names";
import type { Shown } from "./key-secret";

type NewKey = Body<"post", "/v1/admin/keys">;

interface Draft {
  name: string;
  subject: string;
  scopes: readonly Scope[];
  models: string;
  requests: string;
  tokens: string;
  dollars: string;
  days: string;
}

const EMPTY: Draft = {
  name: "",
  subject: "",
  scopes: ["use"],
  models: "",
  requests: "",
  tokens: "",
  dollars: "",
  days: "",
};

const LOST =
  "The key was created, but the answer with its secret was lost. Close this form, and rotate the key in the list.";

const ENDS: readonly (readonly [string, string])[] = [
  ["", "Never"],
  ["1", "In a day"],
  ["7", "In a week"],
  ["30", "In 30 days"],
  ["90", "In 90 days"],
  ["365", "In a year"],
];

interface CreateKeyProps {
  isOpen: boolean;
  /** "": the caller's own. */
  tenant: string;
  onClose: () => void;
  onMade: (shown: Shown) => void;
  /** A key was made whose secret nobody has. */
  onLost: () => void;
}

export function CreateKey({ isOpen, onClose, ...rest }: CreateKeyProps): JSX.Element {
  const [isBusy, setBusy] = useState(false);
  return (
    <Dialog title="Create a key" isOpen={isOpen} {...(!isBusy && { onClose })}>
      <KeyForm {...rest} onClose={onClose} onBusy={setBusy} />
    </Dialog>
  );
}

type FormProps = Omit<CreateKeyProps, "isOpen"> & { onBusy: (isBusy: boolean) => void };

function KeyForm({ tenant, onClose, onMade, onLost, onBusy }: FormProps): JSX.Element {
  const [draft, setDraft] = useState(EMPTY);
  // A repetition of the same request makes no second key. It must have the same end, too.
  const attempt = useMemo(() => ({ id: newAttempt(), at: Math.floor(Date.now() / 1000) }), [draft]);
  const set = (change: Partial<Draft>) => setDraft({ ...draft, ...change });
  const action = useAction(async () => {
    if (draft.scopes.length === 0) throw new ApiError(400, "no_scope", "Choose at least one scope.");
    const body = { ...toRequest(draft, attempt.at), ...(tenant && { tenant }) };
    try {
      const made = await post("/v1/admin/keys", body, { headers: { "idempotency-key": attempt.id } });
      onMade({ name: nameOfKey(made), secret: made.key, note: "" });
    } catch (failure) {
      if (toApiError(failure).code !== "secret_returned") throw failure;
      onLost();
      throw new ApiError(0, "secret_returned", LOST);
    }
  });
  useEffect(() => onBusy(action.isBusy), [action.isBusy]);
  return (
    <Form action={action} label="Create" onCancel={onClose}>
      {tenant && (
        <p>
          For the tenant <strong>{tenant}</strong>.
        </p>
      )}
      <TextField
        label="Name"
        hint="For you, such as the application."
        autoComplete="off"
        value={draft.name}
        onText={(name) => set({ name })}
      />
      <TextField
        label="Owner"
        hint="In logs and usage. Empty: the key's id."
        autoComplete="off"
        value={draft.subject}
        onText={(subject) => set({ subject })}
      />
      <ScopeBoxes chosen={draft.scopes} onChange={(scopes) => set({ scopes })} />
      <TextField
        label="Models"
        hint="Patterns with blanks between them, such as openai/gpt-5*. Empty: all."
        autoComplete="off"
        value={draft.models}
        onText={(models) => set({ models })}
      />
      <fieldset class="columns">
        <legend>Budgets</legend>
        <LimitField label="Dollars per month" step="any" value={draft.dollars} onText={(dollars) => set({ dollars })} />
        <LimitField label="Tokens per minute" value={draft.tokens} onText={(tokens) => set({ tokens })} />
        <LimitField label="Requests per minute" value={draft.requests} onText={(requests) => set({ requests })} />
      </fieldset>
      <ChoiceField label="Ends" value={draft.days} choices={ENDS} onChoose={(days) => set({ days })} />
    </Form>
  );
}

function ScopeBoxes({
  chosen,
  onChange,
}: {
  chosen: readonly Scope[];
  onChange: (scopes: readonly Scope[]) => void;
}): JSX.Element {
  const toggle = (scope: Scope, isOn: boolean) =>
    onChange(isOn ? [...chosen, scope] : chosen.filter((each) => each !== scope));
  return (
    <fieldset class="checks">
      <legend>Scopes</legend>
      {(Object.keys(SCOPES) as Scope[])
        .filter((scope) => may(scope))
        .map((scope) => (
          <Check
            key={scope}
            label={
              <>
                <strong>{scope}</strong> <span class="hint">{SCOPES[scope]}</span>
              </>
            }
            isOn={chosen.includes(scope)}
            onChange={(isOn) => toggle(scope, isOn)}
          />
        ))}
    </fieldset>
  );
}

interface LimitFieldProps {
  label: string;
  value: string;
  step?: string;
  onText: (text: string) => void;
}

function LimitField({ step = "1", ...rest }: LimitFieldProps): JSX.Element {
  const least = step === "1" ? "1" : "0";
  return <TextField {...rest} type="number" inputMode="decimal" min={least} step={step} placeholder="No limit" />;
}

function toRequest(draft: Draft, at: number): Partial<NewKey> {
  const number = (text: string) => (text === "" ? null : Number(text));
  const budgets = {
    requests_per_minute: number(draft.requests),
    tokens_per_minute: number(draft.tokens),
    dollars_per_month: number(draft.dollars),
  };
  return {
    name: draft.name,
    subject: draft.subject,
    scopes: [...draft.scopes],
    models: draft.models.split(/[\s,]+/).filter(Boolean),
    budgets,
    expires_at: draft.days ? at + Number(draft.days) * 86_400 : null,
  };
}

function newAttempt(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}
