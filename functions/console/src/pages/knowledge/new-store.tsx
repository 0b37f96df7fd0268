import type { JSX } from "preact";
import { useCallback, useState } from "preact/hooks";
import { addressOf, type Body, get, post } from "../../api";
import { useAction } from "../../components/action";
import { CopyAs } from "../../components/copy";
import { Dialog } from "../../components/dialog";
import { ChoiceField, TextField } from "../../components/field";
import { Form } from "../../components/form";
import { useResource } from "../../resource";
import { navigate } from "../../router";
import { storePath } from "./head";

export function NewStore({ isOpen, onClose }: { isOpen: boolean; onClose: () => void }): JSX.Element {
  return (
    <Dialog title="New vector store" isOpen={isOpen} onClose={onClose}>
      <StoreForm onClose={onClose} />
    </Dialog>
  );
}

function StoreForm({ onClose }: { onClose: () => void }): JSX.Element {
  const [name, setName] = useState("");
  const [model, setModel] = useState("");
  const [days, setDays] = useState("");
  const models = useResource(useCallback((signal: AbortSignal) => get("/v1/models", { signal }), []));
  const embedding = (models.value?.data ?? []).filter(({ model_type: type }) => type === "embedding");
  const wrongDays = days !== "" && !(Number.isInteger(Number(days)) && Number(days) >= 1 && Number(days) <= 365);
  const body: Partial<NonNullable<Body<"post", "/v1/vector_stores">>> = {
    name: name.trim(),
    ...(model && { embedding_model: model }),
    ...(days && { expires_after: { anchor: "last_active_at" as const, days: Number(days) } }),
  };
  const action = useAction(async () => {
    if (wrongDays) return;
    const { id } = await post("/v1/vector_stores", body);
    onClose();
    navigate(storePath(id));
  });
  return (
    <Form
      action={action}
      label="Create"
      onCancel={onClose}
      beside={<CopyAs snippet={{ method: "POST", url: addressOf("/v1/vector_stores").href, body }} />}
    >
      <TextField label="Name" maxLength={256} value={name} onText={setName} />
      <ChoiceField
        label="Embedding model"
        hint="It cannot be changed later."
        value={model}
        choices={[["", "The default"], ...embedding.map(({ identifier }) => identifier)]}
        onChoose={setModel}
      />
      <TextField
        label="Days without use after which it expires"
        hint="Empty: it stays until it is deleted."
        error={wrongDays ? "Enter a number from 1 to 365." : ""}
        inputMode="numeric"
        value={days}
        onText={(text) => setDays(text.trim())}
      />
    </Form>
  );
}
