import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { post, remove } from "../../api";
import { ConfirmDialog, keepFocus } from "../../components/confirm";
import { ChoiceField } from "../../components/field";
import { toast } from "../../components/toast";
import { ownKeyId } from "../../identity";
import { keep } from "../../session";
import { type ApiKey, nameOfKey } from "../steer/key-names";
import type { Shown } from "./key-secret";

const OVERLAPS: readonly (readonly [number, string])[] = [
  [0, "At once"],
  [3600, "In an hour"],
  [86_400, "In a day"],
  [7 * 86_400, "In a week"],
  [30 * 86_400, "In 30 days"],
];

interface RotateProps {
  apiKey: ApiKey | null;
  onClose: () => void;
  onMade: (shown: Shown) => void;
}

export function RotateKey({ apiKey, onClose, onMade }: RotateProps): JSX.Element {
  const [overlap, setOverlap] = useState(0);
  const rotate = async () => {
    if (!apiKey) return;
    const params = { key_id: apiKey.id };
    const made = await post("/v1/admin/keys/{key_id}/rotate", { overlap_seconds: overlap }, { params });
    const isOwn = apiKey.id === ownKeyId();
    if (isOwn) keep(made.key);
    onMade({ name: nameOfKey(made), secret: made.key, note: isOwn ? "This tab goes on with it." : "" });
  };
  return (
    <ConfirmDialog
      title={apiKey ? `Rotate ${nameOfKey(apiKey)}` : "Rotate"}
      isOpen={apiKey !== null}
      onClose={onClose}
      action="Rotate"
      onConfirm={rotate}
    >
      <p>It gets another secret, with the same rights and limits. You see the new key once.</p>
      <ChoiceField
        label="The current key stops working"
        hint="A cached answer may accept it for a minute more."
        value={overlap}
        choices={OVERLAPS}
        onChoose={setOverlap}
      />
    </ConfirmDialog>
  );
}

interface RevokeProps {
  apiKey: ApiKey | null;
  onClose: () => void;
  onRevoked: () => void;
}

export function RevokeKey({ apiKey, onClose, onRevoked }: RevokeProps): JSX.Element {
  const revoke = async () => {
    if (!apiKey) return;
    await remove("/v1/admin/keys/{key_id}", { params: { key_id: apiKey.id } });
    toast(`${nameOfKey(apiKey)} is revoked`);
    onRevoked();
    keepFocus("keys");
  };
  return (
    <ConfirmDialog
      title={apiKey ? `Revoke ${nameOfKey(apiKey)}` : "Revoke"}
      isOpen={apiKey !== null}
      onClose={onClose}
      action="Revoke the key"
      onConfirm={revoke}
    >
      <p>
        Requests with the key <code>{apiKey?.id}</code> are refused, at the latest when a cached answer ends, by default
        after a minute. It cannot be undone.
      </p>
      <p>What the key has queued still runs. To end that, too, stop the key on the page Running.</p>
      {apiKey?.id === ownKeyId() && (
        <p class="warning">This is the key of this tab. You will have to sign in with another one.</p>
      )}
    </ConfirmDialog>
  );
}
