import type { JSX } from "preact";
import { useCallback, useState } from "preact/hooks";
import { addressOf, type Body, get, post } from "../../api";
import { Button } from "../../components/button";
import { CopyAs } from "../../components/copy";
import { Dialog } from "../../components/dialog";
import { Field } from "../../components/field";
import { ErrorState } from "../../components/states";
import { type ApiError, toApiError } from "../../errors";
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
  const [error, setError] = useState<ApiError | null>(null);
  const [isBusy, setBusy] = useState(false);
  const models = useResource(useCallback((signal: AbortSignal) => get("/v1/models", { signal }), []));
  const embedding = (models.value?.data ?? []).filter(({ model_type: type }) => type === "embedding");
  const wrongDays = days !== "" && !(Number.isInteger(Number(days)) && Number(days) >= 1 && Number(days) <= 365);
  const body: Partial<NonNullable<Body<"post", "/v1/vector_stores">>> = {
    name: name.trim(),
    ...(model && { embedding_model: model }),
    ...(days && { expires_after: { anchor: "last_active_at" as const, days: Number(days) } }),
  };
  const submit = async (event: Event) => {
    event.preventDefault();
    if (wrongDays) return;
    setBusy(true);
    setError(null);
    try {
      const { id } = await post("/v1/vector_stores", body);
      onClose();
      navigate(storePath(id));
    } catch (failure) {
      setError(toApiError(failure));
      setBusy(false);
    }
  };
  return (
    <form class="stack" onSubmit={(event) => void submit(event)}>
      <Field label="Name">
        {(ids) => <input {...ids} value={name} maxLength={256} onInput={(e) => setName(e.currentTarget.value)} />}
      </Field>
      <Field label="Embedding model" hint="It cannot be changed later.">
        {(ids) => (
          <select {...ids} value={model} onChange={(e) => setModel(e.currentTarget.value)}>
            <option value="">The default</option>
            {embedding.map(({ identifier }) => (
              <option key={identifier}>{identifier}</option>
            ))}
          </select>
        )}
      </Field>
      <Field
        label="Days without use after which it expires"
        hint="Empty: it stays until it is deleted."
        error={wrongDays ? "Enter a number from 1 to 365." : ""}
      >
        {(ids) => (
          <input {...ids} inputMode="numeric" value={days} onInput={(e) => setDays(e.currentTarget.value.trim())} />
        )}
      </Field>
      {error && <ErrorState error={error} />}
      <div class="actions">
        <Button type="submit" kind="primary" busy={isBusy}>
          Create
        </Button>
        <Button onClick={onClose}>Cancel</Button>
      </div>
      <CopyAs snippet={{ method: "POST", url: addressOf("/v1/vector_stores").href, body }} />
    </form>
  );
}
