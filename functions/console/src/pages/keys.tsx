/** API keys: list, create, rotate, revoke. */
import type { JSX } from "preact";
import { useCallback, useState } from "preact/hooks";
import { get } from "../api";
import { Button } from "../components/button";
import { PageHead } from "../components/head";
import { type Column, type Paged, Table, usePaged } from "../components/list";
import { EmptyState } from "../components/states";
import { Id } from "../components/facts";
import { Badge, Time } from "../components/values";
import { formatCount, formatDollars } from "../format";
import { ownKeyId } from "../identity";
import { CreateKey } from "./keys/create-key";
import { RevokeKey, RotateKey } from "./keys/key-dialogs";
import { KeySecret, type Shown } from "./keys/key-secret";
import { NeedsSignIn } from "./steer/gate";
import { type ApiKey, nameOfKey, stateOf } from "./steer/key-names";
import { TenantField, useTenant } from "./steer/tenant-field";

const PAGE = 50;

type Open = { kind: "create" } | { kind: "rotate" | "revoke"; key: ApiKey } | null;

export default function KeysPage(): JSX.Element {
  return (
    <div class="page page-wide">
      <NeedsSignIn what="Keys">
        <Keys />
      </NeedsSignIn>
    </div>
  );
}

function Keys(): JSX.Element {
  const { tenant, query, setTenant } = useTenant();
  const load = useCallback(
    async (before: readonly ApiKey[], signal: AbortSignal) => {
      const after = before.at(-1)?.id ?? null;
      const page = await get("/v1/admin/keys", { query: { ...query, limit: PAGE, after }, signal });
      return { items: page.data, hasMore: page.has_more };
    },
    [tenant],
  );
  const paged = usePaged(load);
  const [open, setOpen] = useState<Open>(null);
  const [shown, setShown] = useState<Shown | null>(null);
  const close = () => setOpen(null);
  const onMade = (made: Shown) => {
    close();
    setShown(made);
    paged.reload();
  };
  return (
    <>
      <PageHead
        title="Keys"
        id="keys"
        lead="Each application has a key of its own, with its rights, limits and end."
        action={
          <Button kind="primary" onClick={() => setOpen({ kind: "create" })}>
            Create a key
          </Button>
        }
      />
      <TenantField tenant={tenant} onChange={setTenant} />
      <KeyTable paged={paged} onOpen={setOpen} />
      <CreateKey
        isOpen={open?.kind === "create"}
        tenant={tenant}
        onClose={close}
        onMade={onMade}
        onLost={paged.reload}
      />
      <RotateKey apiKey={open?.kind === "rotate" ? open.key : null} onClose={close} onMade={onMade} />
      <RevokeKey apiKey={open?.kind === "revoke" ? open.key : null} onClose={close} onRevoked={paged.reload} />
      <KeySecret shown={shown} onClose={() => setShown(null)} />
    </>
  );
}

function KeyTable({ paged, onOpen }: { paged: Paged<ApiKey>; onOpen: (open: Open) => void }): JSX.Element {
  const columns: Column<ApiKey>[] = [
    { title: "Key", cell: (key) => <KeyName apiKey={key} /> },
    { title: "Scopes", cell: (key) => <Scopes apiKey={key} /> },
    { title: "Limits", cell: (key) => <Limits apiKey={key} /> },
    { title: "Status", cell: (key) => <State apiKey={key} /> },
    {
      title: "Actions",
      cell: (key) =>
        stateOf(key) === "active" && (
          <div class="row-actions">
            <Button onClick={() => onOpen({ kind: "rotate", key })} aria-label={`Rotate ${nameOfKey(key)}`}>
              Rotate
            </Button>
            <Button
              kind="danger"
              onClick={() => onOpen({ kind: "revoke", key })}
              aria-label={`Revoke ${nameOfKey(key)}`}
            >
              Revoke
            </Button>
          </div>
        ),
    },
  ];
  return (
    <Table
      path="/v1/admin/keys"
      caption="API keys, the newest first"
      columns={columns}
      paged={paged}
      keyOf={(key) => key.id}
      empty={<EmptyState title="There are no keys">Create one for each application that calls this API.</EmptyState>}
    />
  );
}

function KeyName({ apiKey }: { apiKey: ApiKey }): JSX.Element {
  return (
    <div class="two-lines">
      <strong>
        <bdi>{nameOfKey(apiKey)}</bdi> {apiKey.id === ownKeyId() && <span class="badge">this tab</span>}
      </strong>
      <div class="hint">
        <Id id={apiKey.id} of={nameOfKey(apiKey)} />
      </div>
      {apiKey.subject !== apiKey.id && <span class="hint">of {apiKey.subject}</span>}
    </div>
  );
}

function Scopes({ apiKey }: { apiKey: ApiKey }): JSX.Element {
  return (
    <ul class="scopes">
      {apiKey.scopes.map((scope) => (
        <li key={scope} class="badge">
          {scope}
        </li>
      ))}
    </ul>
  );
}

function Limits({ apiKey: { budgets, models } }: { apiKey: ApiKey }): JSX.Element {
  const lines = [
    budgets.dollars_per_month != null && `${formatDollars(budgets.dollars_per_month)} a month`,
    budgets.tokens_per_minute != null && `${formatCount(budgets.tokens_per_minute)} tokens a minute`,
    budgets.requests_per_minute != null && `${formatCount(budgets.requests_per_minute)} requests a minute`,
    models.length > 0 && `Models ${models.join(", ")}`,
  ].filter((line) => line !== false);
  return (
    <div class="two-lines">
      {lines.length ? lines.map((line) => <span key={line}>{line}</span>) : <span class="hint">None</span>}
    </div>
  );
}

function State({ apiKey }: { apiKey: ApiKey }): JSX.Element {
  const state = stateOf(apiKey);
  return (
    <div class="two-lines">
      <span>
        <Badge status={state} />
      </span>
      <span class="hint">
        Created <Time at={apiKey.created_at} />
      </span>
      {apiKey.revoked_at && (
        <span class="hint">
          Revoked <Time at={apiKey.revoked_at} />
        </span>
      )}
      {!apiKey.revoked_at && apiKey.expires_at && (
        <span class="hint">
          {state === "expired" ? "Ended" : "Ends"} <Time at={apiKey.expires_at} />
        </span>
      )}
      {apiKey.previous_expires_at && apiKey.previous_expires_at * 1000 > Date.now() && (
        <span class="hint">
          The key before the rotation works until <Time at={apiKey.previous_expires_at} />
        </span>
      )}
    </div>
  );
}
