import type { JSX } from "preact";
import { useMemo, useState } from "preact/hooks";
import { type Body, post } from "../../api";
import { Button } from "../../components/button";
import { Dialog } from "../../components/dialog";
import { Field } from "../../components/field";
import { toApiError } from "../../errors";
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
      <KeyForm {...rest} onClose={onClose} isBusy={isBusy} setBusy={setBusy} />
    </Dialog>
  );
}

type FormProps = Omit<CreateKeyProps, "isOpen"> & { isBusy: boolean; setBusy: (isBusy: boolean) => void };

function KeyForm({ tenant, onClose, onMade, onLost, isBusy, setBusy }: FormProps): JSX.Element {
  const [draft, setDraft] = useState(EMPTY);
  const [error, setError] = useState("");
  // A repetition of the same request makes no second key. It must have the same end, too.
  const attempt = useMemo(() => ({ id: newAttempt(), at: Math.floor(Date.now() / 1000) }), [draft]);
  const set = (change: Partial<Draft>) => setDraft({ ...draft, ...change });
  const submit = async (event: Event) => {
    event.preventDefault();
    setError("");
    if (draft.scopes.length === 0) return setError("Choose at least one scope.");
    setBusy(true);
    try {
      const body = { ...toRequest(draft, attempt.at), ...(tenant && { tenant }) };
      const made = await post("/v1/admin/keys", body, { headers: { "idempotency-key": attempt.id } });
      onMade({ name: nameOfKey(made), secret: made.key, note: "" });
    } catch (failure) {
      const { code, message } = toApiError(failure);
      setError(code === "secret_returned" ? LOST : message);
      if (code === "secret_returned") onLost();
    } finally {
      setBusy(false);
    }
  };
  return (
    <form class="stack" onSubmit={(event) => void submit(event)}>
      {tenant && (
        <p>
          For the tenant <strong>{tenant}</strong>.
        </p>
      )}
      <TextField
        label="Name"
        hint="For you, such as the application."
        value={draft.name}
        onText={(name) => set({ name })}
      />
      <TextField
        label="Owner"
        hint="In logs and usage. Empty: the key's id."
        value={draft.subject}
        onText={(subject) => set({ subject })}
      />
      <ScopeBoxes chosen={draft.scopes} onChange={(scopes) => set({ scopes })} />
      <TextField
        label="Models"
        hint="Patterns with blanks between them, such as openai/gpt-5*. Empty: all."
        value={draft.models}
        onText={(models) => set({ models })}
      />
      <fieldset class="columns">
        <legend>Budgets</legend>
        <NumberField
          label="Dollars per month"
          step="any"
          value={draft.dollars}
          onText={(dollars) => set({ dollars })}
        />
        <NumberField label="Tokens per minute" value={draft.tokens} onText={(tokens) => set({ tokens })} />
        <NumberField label="Requests per minute" value={draft.requests} onText={(requests) => set({ requests })} />
      </fieldset>
      <Field label="Ends">
        {(ids) => (
          <select {...ids} value={draft.days} onChange={(event) => set({ days: event.currentTarget.value })}>
            {ENDS.map(([days, words]) => (
              <option key={days} value={days}>
                {words}
              </option>
            ))}
          </select>
        )}
      </Field>
      {error && (
        <p class="field-error" role="alert">
          {error}
        </p>
      )}
      <div class="actions">
        <Button type="submit" kind="primary" busy={isBusy}>
          Create
        </Button>
        <Button onClick={onClose} disabled={isBusy}>
          Cancel
        </Button>
      </div>
    </form>
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
    <fieldset class="boxes">
      <legend>Scopes</legend>
      {(Object.keys(SCOPES) as Scope[])
        .filter((scope) => may(scope))
        .map((scope) => (
          <label key={scope} class="box">
            <input
              type="checkbox"
              checked={chosen.includes(scope)}
              onChange={(event) => toggle(scope, event.currentTarget.checked)}
            />
            <span>
              <strong>{scope}</strong> <span class="hint">{SCOPES[scope]}</span>
            </span>
          </label>
        ))}
    </fieldset>
  );
}

interface TextFieldProps {
  label: string;
  hint?: string;
  value: string;
  step?: string;
  onText: (text: string) => void;
}

function TextField({ label, hint, value, onText }: TextFieldProps): JSX.Element {
  return (
    <Field label={label} {...(hint && { hint })}>
      {(ids) => (
        <input {...ids} autoComplete="off" value={value} onInput={(event) => onText(event.currentTarget.value)} />
      )}
    </Field>
  );
}

function NumberField({ label, value, step = "1", onText }: TextFieldProps): JSX.Element {
  return (
    <Field label={label}>
      {(ids) => (
        <input
          {...ids}
          type="number"
          inputMode="decimal"
          min={step === "1" ? "1" : "0"}
          step={step}
          placeholder="No limit"
          value={value}
          onInput={(event) => onText(event.currentTarget.value)}
        />
      )}
    </Field>
  );
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
