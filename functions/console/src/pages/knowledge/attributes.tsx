import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { post } from "../../api";
import { useAction } from "../../components/action";
import { Button } from "../../components/button";
import { Dialog } from "../../components/dialog";
import { Facts } from "../../components/facts";
import { TextField } from "../../components/field";
import { Form } from "../../components/form";
import { toast } from "../../components/toast";
import { isRecord } from "../../errors";
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
        <Facts rows={entries.map(([name, value]) => [formatName(name), String(value)] as const)} />
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

function Editor({ file, onChange, onClose }: AttributesProps & { onClose: () => void }): JSX.Element {
  const [text, setText] = useState(JSON.stringify(file.attributes, null, 2));
  const [problem, setProblem] = useState("");
  const action = useAction(async () => {
    let attributes: StoreFile["attributes"];
    try {
      attributes = readAttributes(text);
    } catch (failure) {
      return setProblem((failure as Error).message);
    }
    setProblem("");
    const params = { vector_store_id: file.vector_store_id, file_id: file.id };
    onChange(await post(STORE_FILE, { attributes }, { params }));
    toast("Attributes saved");
    onClose();
  });
  return (
    <Form action={action} label="Save" onCancel={onClose}>
      <TextField
        label="Attributes as JSON"
        hint="Up to 16 texts, numbers, or true and false."
        error={problem}
        class="mono"
        rows={8}
        spellcheck={false}
        value={text}
        onText={setText}
      />
    </Form>
  );
}

/** Read a JSON object. The API checks its values. Raises Error with words for the author. */
function readAttributes(text: string): StoreFile["attributes"] {
  const value = parseJson(text);
  if (!isRecord(value)) throw new Error("Write a JSON object, in braces.");
  return value as StoreFile["attributes"];
}
