import type { JSX } from "preact";
import { useCallback } from "preact/hooks";
import { get } from "../../api";
import { Table } from "../../components/list";
import { EmptyState } from "../../components/states";
import { formatDollars } from "../../format";
import { type Resource, useResource } from "../../resource";
import { Link } from "../../router";
import { type ApiKey, nameOfKey, stateOf } from "../steer/key-names";
import { toDay } from "./report";

interface BudgetTableProps {
  keys: Resource<readonly ApiKey[]>;
  /** The API sums usage. */
  hasSums: boolean;
}

/** The keys with a limit of money, and what each has spent in this month. */
export function BudgetTable({ keys, hasSums }: BudgetTableProps): JSX.Element {
  const load = useCallback(
    (signal: AbortSignal) => (hasSums ? readSpent(signal) : Promise.resolve(new Map<string, number | null>())),
    [hasSums],
  );
  const spent = useResource(load);
  const reload = () => {
    keys.reload();
    spent.reload();
  };
  const limited = keys.value?.filter((key) => key.budgets.dollars_per_month != null && stateOf(key) === "active") ?? [];
  const paged = {
    items: limited,
    hasMore: false,
    isLoading: keys.isLoading,
    error: keys.error ?? spent.error,
    loadMore: reload,
    reload,
  };
  return (
    <section class="stack">
      <h2>Budgets of {new Date().toLocaleString(undefined, { month: "long", year: "numeric", timeZone: "UTC" })}</h2>
      <Table
        caption="Keys with a monthly budget, and what they have spent in this month"
        columns={[
          { title: "Key", cell: (key: ApiKey) => <bdi class="long-text">{nameOfKey(key)}</bdi> },
          { title: "Spent", isNumber: true, cell: (key: ApiKey) => wordsOf(spent.value, key, hasSums) },
          { title: "Limit", isNumber: true, cell: (key: ApiKey) => formatDollars(key.budgets.dollars_per_month ?? 0) },
          { title: "Used", cell: (key: ApiKey) => <Used apiKey={key} spent={spent.value?.get(key.id)} /> },
        ]}
        paged={paged}
        keyOf={(key) => key.id}
        empty={
          <EmptyState title="No key has a monthly budget">
            Set one when you <Link to="/keys">create a key</Link>. Tenants get theirs from the parameter{" "}
            <code>Tenants</code>.
          </EmptyState>
        }
      />
      <p class="hint">
        Spent is what ended runs have cost. What running ones have reserved also counts for the limit. A month ends at
        midnight, UTC.
      </p>
    </section>
  );
}

function Used({ apiKey, spent = 0 }: { apiKey: ApiKey; spent: number | null | undefined }): JSX.Element | null {
  const limit = apiKey.budgets.dollars_per_month ?? 0;
  if (spent === null || !limit) return null;
  const part = spent / limit;
  return (
    <span class="used">
      <meter
        min={0}
        max={1}
        high={0.8}
        optimum={0}
        value={Math.min(1, part)}
        aria-label={`Used by ${nameOfKey(apiKey)}`}
      />
      <span class="number">{part > 0 && part < 0.01 ? "< 1" : Math.round(part * 100)} %</span>
    </span>
  );
}

function wordsOf(found: ReadonlyMap<string, number | null> | null, key: ApiKey, hasSums: boolean): string {
  if (!hasSums) return "not summed";
  if (!found) return "…";
  const spent = found.get(key.id);
  return spent === null ? "hidden" : formatDollars(Math.round((spent ?? 0) * 1e6) / 1e6);
}

/** Return what each key has spent since the month began. */
async function readSpent(signal: AbortSignal): Promise<ReadonlyMap<string, number | null>> {
  const today = toDay(Date.now());
  const query = { start: `${today.slice(0, 8)}01`, end: today, group_by: ["key" as const] };
  const { data } = await get("/v1/usage", { query, signal });
  return new Map((data ?? []).map(({ key_id, dollars }) => [key_id ?? "", dollars ?? null]));
}
