import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { post } from "../../api";
import { Button } from "../../components/button";
import { Dialog } from "../../components/dialog";
import { Field } from "../../components/field";
import { ErrorState } from "../../components/states";
import { toast } from "../../components/toast";
import { type ApiError, isRecord, toApiError } from "../../errors";
import { formatName } from "../../format";
import { parseJson } from "../../schema";
import { mayWrite, STORE_FILE, type StoreFile } from "./api";

interface AttributesProps {
  file: StoreFile;
  onChange: (file: StoreFile) => void;
}

/** Attributes of a file, by which searches can be filtered. */
export function Attributes({ file, onChange }: AttributesProps): JSX.Element {
  const [isOpen, setOpen] = useState(false);
  const entries = Object.entries(file.attributes);
  return (
    <section class="stack" aria-label="Attributes">
      <h2>Attributes</h2>
      {entries.length === 0 ? (
        <p class="hint">None. Searches can be filtered by attributes such as an author or a year.</p>
      ) : (
        <dl class="facts">
          {entries.map(([name, value]) => (
            <Pair key={name} name={name} value={String(value)} />
          ))}
        </dl>
      )}
      {mayWrite() && (
        <div class="actions">
          <Button onClick={() => setOpen(true)}>Edit attributes</Button>
        </div>
      )}
      <Dialog title="Attributes" isOpen={isOpen} onClose={() => setOpen(false)}>
        <Editor file={file} onChange={onChange} onClose={() => setOpen(false)} />
      </Dialog>
    </section>
  );
}

function Pair({ name, value }: { name: string; value: string }): JSX.Element {
  return (
    <>
      <dt class="mono wrap">{formatName(name)}</dt>
      <dd>{value}</dd>
    </>
  );
}

function Editor({ file, onChange, onClose }: AttributesProps & { onClose: () => void }): JSX.Element {
  const [text, setText] = useState(JSON.stringify(file.attributes, null, 2));
  const [error, setError] = useState("");
  const [failure, setFailure] = useState<ApiError | null>(null);
  const [isBusy, setBusy] = useState(false);
  const submit = async (event: Event) => {
    event.preventDefault();
    let attributes: StoreFile["attributes"];
    try {
      attributes = readAttributes(text);
    } catch (problem) {
      setError((problem as Error).message);
      return;
    }
    setError("");
    setFailure(null);
    setBusy(true);
    try {
      const params = { vector_store_id: file.vector_store_id, file_id: file.id };
      onChange(await post(STORE_FILE, { attributes }, { params }));
      toast("Attributes saved");
      onClose();
    } catch (problem) {
      setFailure(toApiError(problem));
    } finally {
      setBusy(false);
    }
  };
  return (
    <form class="stack" onSubmit={(event) => void submit(event)}>
      <Field label="Attributes as JSON" hint="Up to 16 texts, numbers, or true and false." error={error}>
        {(ids) => (
          <textarea
            {...ids}
            class="mono"
            rows={8}
            spellcheck={false}
            value={text}
            onInput={(event) => setText(event.currentTarget.value)}
          />
        )}
      </Field>
      {failure && <ErrorState error={failure} />}
      <div class="actions">
        <Button type="submit" kind="primary" busy={isBusy}>
          Save
        </Button>
        <Button onClick={onClose}>Cancel</Button>
      </div>
    </form>
  );
}

/** Read a JSON object. The API checks its values. Raises Error with words for the author. */
function readAttributes(text: string): StoreFile["attributes"] {
  const value = parseJson(text);
  if (!isRecord(value)) throw new Error("Write a JSON object, in braces.");
  return value as StoreFile["attributes"];
}
