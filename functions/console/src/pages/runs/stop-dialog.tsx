import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { post } from "../../api";
import { Check } from "../../components/check";
import { ConfirmDialog } from "../../components/confirm";
import { ChoiceField, TextField } from "../../components/field";
import { toast } from "../../components/toast";
import { ownKeyId } from "../../identity";
import { identity } from "../../session";
import { KINDS, type StopKind } from "./stop-list";

export interface Choice {
  kind: StopKind;
  id: string;
  name: string;
}

/** What can be stopped. Without choices, an id is asked for. */
export interface Target {
  choices: readonly Choice[];
}

const EFFECTS: Readonly<Record<StopKind, string>> = {
  turn: "It fails within 2 seconds. Its session goes on with the next turn.",
  response: "It fails within 2 seconds; one that is queued fails when it would start.",
  session: "Its running turn fails within 2 seconds, and further ones are refused until the stop is lifted.",
  conversation: "Its running response fails within 2 seconds, and further ones are refused until the stop is lifted.",
  key: "All work of the key fails within 2 seconds, and new work is refused until the stop is lifted.",
  tenant:
    "ALL work of the tenant fails within 2 seconds, and new work is refused. Only the operator can lift this stop.",
};

interface StopDialogProps {
  target: Target | null;
  /** "": the caller's own. */
  tenant: string;
  onClose: () => void;
  onStopped: () => void;
}

export function StopDialog({ target, tenant, onClose, onStopped }: StopDialogProps): JSX.Element {
  const [kind, setKind] = useState<StopKind>("turn");
  const [id, setId] = useState("");
  useEffect(() => {
    setKind(target?.choices[0]?.kind ?? "session");
    setId("");
  }, [target]);
  const choices = target?.choices ?? [];
  const chosen = choices.find((choice) => choice.kind === kind);
  const hit = chosen?.id ?? id.trim();
  const own = tenant || (identity.value?.tenant ?? "");
  const stop = async () => {
    const what = kind === "tenant" ? {} : { id: hit };
    await post("/v1/admin/stop", { kind, ...what, ...(tenant && { tenant }) });
    toast(kind === "tenant" ? "The tenant is stopped" : `${KINDS[kind]} ${hit} is stopped`);
    onStopped();
  };
  return (
    <ConfirmDialog
      title="Stop work"
      isOpen={target !== null}
      onClose={onClose}
      action={kind === "tenant" ? "Stop the tenant" : `Stop the ${kind}`}
      {...(kind === "tenant" && { typed: own || "tenant", typedLabel: "Type the tenant to confirm" })}
      onConfirm={stop}
    >
      {choices.length > 0 ? (
        <Choices choices={choices} tenant={own} kind={kind} onChange={setKind} />
      ) : (
        <KindAndId kind={kind} id={id} onKind={setKind} onId={setId} />
      )}
      <p>{EFFECTS[kind]} What tools have done elsewhere stays done.</p>
      {kind === "key" && hit === ownKeyId() && (
        <p class="warning">This is the key of this tab. Another administrator will have to lift the stop.</p>
      )}
    </ConfirmDialog>
  );
}

interface ChoicesProps {
  choices: readonly Choice[];
  tenant: string;
  kind: StopKind;
  onChange: (kind: StopKind) => void;
}

function Choices({ choices, tenant, kind, onChange }: ChoicesProps): JSX.Element {
  const all = [...choices, { kind: "tenant" as const, id: "", name: `the whole tenant ${tenant}` }];
  return (
    <fieldset class="checks">
      <legend>Stop</legend>
      {all.map((choice) => (
        <Check
          key={choice.kind}
          name="stop"
          label={choice.name}
          isOn={choice.kind === kind}
          onChange={() => onChange(choice.kind)}
        />
      ))}
    </fieldset>
  );
}

interface KindAndIdProps {
  kind: StopKind;
  id: string;
  onKind: (kind: StopKind) => void;
  onId: (id: string) => void;
}

function KindAndId({ kind, id, onKind, onId }: KindAndIdProps): JSX.Element {
  return (
    <>
      <ChoiceField
        label="What"
        value={kind}
        choices={Object.entries(KINDS) as [StopKind, string][]}
        onChoose={onKind}
      />
      {kind !== "tenant" && (
        <TextField label="Id" class="mono" autoComplete="off" spellcheck={false} value={id} onText={onId} />
      )}
    </>
  );
}
