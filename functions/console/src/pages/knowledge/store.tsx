/** A vector store: its files, and a search in it. */
import type { JSX } from "preact";
import { useCallback } from "preact/hooks";
import { addressOf, get, remove } from "../../api";
import { ConfirmButton } from "../../components/confirm-button";
import { CopyAs } from "../../components/copy";
import { Facts, Id } from "../../components/facts";
import { PageHead } from "../../components/head";
import { ErrorState, Skeleton } from "../../components/states";
import { Tabs } from "../../components/tabs";
import { toast } from "../../components/toast";
import { Badge, Time } from "../../components/values";
import { formatBytes, formatCount, formatName } from "../../format";
import { useResource } from "../../resource";
import { navigate, type PageProps } from "../../router";
import { mayWrite, type Store, STORE } from "./api";
import { useFollow } from "./follow";
import { storePath } from "./head";
import { StoreFiles } from "./store-files";
import { StoreSearch } from "./store-search";
import { Json } from "../../components/json-view";

export default function StorePage({ params }: PageProps): JSX.Element {
  return <StoreView id={params["store"]!} part="files" />;
}

export function StoreView({ id, part }: { id: string; part: "files" | "search" }): JSX.Element {
  const load = useCallback((signal: AbortSignal) => get(STORE, { params: { vector_store_id: id }, signal }), [id]);
  const store = useResource(load);
  const isBusy = store.value?.status === "in_progress";
  const problem = useFollow(isBusy ? [id] : [], async (_, signal) => store.set(await load(signal)));
  return (
    <div class="page page-wide">
      <PageHead
        title={store.value ? formatName(store.value.name) || "Without a name" : "Vector store"}
        above={[["/knowledge", "Vector stores"]]}
      />
      {store.error ? (
        <ErrorState error={store.error} onRetry={store.reload} />
      ) : store.value ? (
        <StoreFacts store={store.value} isShort={part === "search"} />
      ) : (
        <Skeleton lines={4} />
      )}
      {problem && <p class="hint">The state cannot be read now: {problem.message} Trying again …</p>}
      {store.value && (
        <>
          <Tabs
            label="Parts of the vector store"
            tabs={[
              { to: storePath(id), title: "Files" },
              { to: storePath(id, "/search"), title: "Search" },
            ]}
          />
          {part === "search" ? (
            <StoreSearch store={store.value} />
          ) : (
            <StoreFiles store={store.value} onChange={store.reload} />
          )}
        </>
      )}
    </div>
  );
}

function State({ store }: { store: Store }): JSX.Element {
  const { completed, failed, total } = store.file_counts;
  return (
    <>
      <Badge status={store.status} />{" "}
      {total
        ? `${formatCount(completed ?? 0)} of ${formatCount(total)} ${total === 1 ? "file" : "files"} can be searched`
        : "It has no files yet"}
      {failed ? `, ${formatCount(failed)} failed` : ""}
    </>
  );
}

function StoreFacts({ store, isShort }: { store: Store; isShort: boolean }): JSX.Element {
  if (isShort) {
    return (
      <p>
        <State store={store} />
      </p>
    );
  }
  const deleteStore = async () => {
    await remove(STORE, { params: { vector_store_id: store.id } });
    toast("Vector store deleted");
    navigate("/knowledge", { replace: true });
  };
  return (
    <section class="card stack" aria-label="The vector store">
      <Facts
        rows={[
          ["Status", <State store={store} />],
          Boolean(store.description) && ["Description", store.description],
          ["Id", <Id id={store.id} of="the vector store" />],
          ["Size", <span class="number">{formatBytes(store.usage_bytes)}</span>],
          ["Created", <Time at={store.created_at} />],
          ["Last used", <Time at={store.last_active_at} />],
          Boolean(store.expires_at) && [
            "Expires",
            <>
              <Time at={store.expires_at!} />, unless it is used
            </>,
          ],
        ]}
      />
      {mayWrite() && (
        <div class="actions">
          <ConfirmButton
            label="Delete"
            title="Delete this vector store?"
            onConfirm={deleteStore}
            text={`${formatName(store.name) || store.id} and what was ingested into it will be deleted. The files themselves stay.`}
          />
        </div>
      )}
      <Json value={store} label="Vector store">
        <CopyAs snippet={{ method: "GET", url: addressOf(STORE, { vector_store_id: store.id }).href }} />
      </Json>
    </section>
  );
}
