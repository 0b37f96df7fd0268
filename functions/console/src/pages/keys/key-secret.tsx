import type { JSX } from "preact";
import { Button } from "../../components/button";
import { CopyButton } from "../../components/copy";
import { Dialog } from "../../components/dialog";

/** A key that was just made. It is kept in the state of this page only. */
export interface Shown {
  name: string;
  secret: string;
  note: string;
}

/** Show a key, once. Only its button closes the dialog, because the key cannot be shown again. */
export function KeySecret({ shown, onClose }: { shown: Shown | null; onClose: () => void }): JSX.Element {
  return (
    <Dialog title={shown ? `The key of ${shown.name}` : "Key"} isOpen={shown !== null}>
      {shown && (
        <>
          <p>Copy it to where it is used. It is shown this once: the server stores only its hash.</p>
          <p class="secret">
            <code>{shown.secret}</code>
          </p>
          {shown.note && <p class="hint">{shown.note}</p>}
          <div class="actions">
            <CopyButton text={shown.secret} what="key" />
            <Button kind="primary" onClick={onClose}>
              I have stored it
            </Button>
          </div>
        </>
      )}
    </Dialog>
  );
}
