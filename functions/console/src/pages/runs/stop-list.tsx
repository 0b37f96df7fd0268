import type { JSX } from "preact";
import { useCallback, useState } from "preact/hooks";
import { get, remove, type Schemas } from "../../api";
import { Button } from "../../components/button";
import { ConfirmDialog, keepFocus } from "../../components/confirm";
import { Table } from "../../components/list";
import { EmptyState } from "../../components/states";
import { toast } from "../../components/toast";
import { Time } from "../../components/values";
import { type Resource, useResource } from "../../resource";

export type Stop = Schemas["StopObject"];
export type StopKind = Stop["kind"];

export const KINDS: Readonly<Record<StopKind, string>> = {
  turn: "Turn",
  session: "Session",
  response: "Response",
  conversation: "Conversation",
  key: "Key",
  tenant: "Tenant",
};

export function useStops(tenant: string): Resource<readonly Stop[]> {
  const load = useCallback(
    async (signal: AbortSignal) => (await get("/v1/admin/stop", { query: tenant ? { tenant } : {}, signal })).data,
    [tenant],
  );
  return useResource<readonly Stop[]>(load);
}

/** The stops of a tenant, which has at most 51. */
export function StopList({ stops, onStop }: { stops: Resource<readonly Stop[]>; onStop: () => void }): JSX.Element {
  const [lifted, setLifted] = useState<Stop | null>(null);
  const paged = { ...stops, items: stops.value ?? [], hasMore: false, loadMore: stops.reload };
  return (
    <section class="stack" aria-labelledby="stops">
      <header class="section-head">
        <h2 id="stops" tabIndex={-1}>
          Stops
        </h2>
        <Button onClick={onStop}>Stop by id</Button>
      </header>
      <Table
        path="/v1/admin/stop"
        caption="Stops, the newest first"
        columns={[
          { title: "What", cell: (stop: Stop) => KINDS[stop.kind] ?? stop.kind },
          { title: "Id", cell: (stop: Stop) => <code>{stop.id}</code> },
          { title: "Since", cell: (stop: Stop) => stop.stopped_at !== null && <Time at={stop.stopped_at} /> },
          {
            title: "Actions",
            cell: (stop: Stop) => (
              <Button onClick={() => setLifted(stop)} aria-label={`Lift the stop of ${stop.kind} ${stop.id}`}>
                Lift
              </Button>
            ),
          },
        ]}
        paged={paged}
        keyOf={(stop) => `${stop.kind}:${stop.id}`}
        empty={<EmptyState title="Nothing is stopped">All work of this tenant is accepted.</EmptyState>}
      />
      <LiftDialog stop={lifted} onClose={() => setLifted(null)} onLifted={stops.reload} />
    </section>
  );
}

interface LiftProps {
  stop: Stop | null;
  onClose: () => void;
  onLifted: () => void;
}

function LiftDialog({ stop, onClose, onLifted }: LiftProps): JSX.Element {
  const lift = async () => {
    if (!stop) return;
    const params = { kind: stop.kind, stop_id: stop.id };
    await remove("/v1/admin/stop/{kind}/{stop_id}", { params, query: { tenant: stop.tenant } });
    toast("The stop is lifted");
    onLifted();
    keepFocus("stops");
  };
  return (
    <ConfirmDialog
      title="Lift the stop"
      isOpen={stop !== null}
      onClose={onClose}
      action="Lift the stop"
      onConfirm={lift}
    >
      <p>
        New work of the {stop?.kind} <code>{stop?.id}</code> is accepted again within 2 seconds. What has ended stays
        ended.
      </p>
    </ConfirmDialog>
  );
}
