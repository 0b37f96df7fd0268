/** Tokens and dollars of the last days, and the budgets of this month. */
import type { ComponentChildren, JSX } from "preact";
import { useCallback, useMemo, useState } from "preact/hooks";
import { get } from "../api";
import { PageHead } from "../components/head";
import { EmptyState, ErrorState, Skeleton } from "../components/states";
import { formatCount, formatDollars } from "../format";
import { useResource } from "../resource";
import { config, may } from "../session";
import { nameOfKey, readKeys, shortId } from "./steer/key-names";
import { BudgetTable } from "./usage/budget-table";
import { Charts } from "./usage/charts";
import { type Group, idOf, type Range, RANGES, type Report, readReport, rowsBy } from "./usage/report";
import { SumTable } from "./usage/sum-table";

const GROUPS: Readonly<Record<Group, string>> = {
  total: "In total",
  key: "By key",
  model: "By model",
  agent: "By agent",
};

const TITLES: Readonly<Record<Group, string>> = { total: "All", key: "Keys", model: "Models", agent: "Agents" };
/** Names of what has no id. */
const WITHOUT: Readonly<Record<Group, string>> = {
  total: "All",
  key: "Without a key",
  model: "Without a model",
  agent: "Without an agent",
};

export default function UsagePage(): JSX.Element {
  const [range, setRange] = useState<Range>(7);
  const [group, setGroup] = useState<Group>("total");
  const load = useCallback(
    async (signal: AbortSignal) => ({ report: await readReport(range, group, signal), group, range }),
    [range, group],
  );
  const { value: data, error, reload, isLoading } = useResource(load);
  const known = useResource(readKeys);
  const keys = known.value;
  const agents = useResource(readAgentNames).value;
  const nameOf = useCallback(
    (id: string) => {
      const shown = data?.group ?? "total";
      if (!id) return WITHOUT[shown];
      if (shown === "model") return id;
      const key = keys?.find((each) => each.id === id);
      return key ? nameOfKey(key) : agents?.get(id) || shortId(id);
    },
    [data, keys, agents],
  );
  return (
    <div class="page page-wide">
      <PageHead
        title="Usage"
        lead={`${may("admin") ? "What your tenant has used" : "What you have used"}, by days in UTC.`}
      />
      {error?.code === "not_enabled" ? (
        <NotEnabled />
      ) : (
        <>
          <div class="line-form">
            <Choice
              legend="Days"
              values={RANGES}
              value={range}
              wordsOf={(each) => `${each} days`}
              onChange={setRange}
            />
            <Choice
              legend="Groups"
              values={Object.keys(GROUPS) as Group[]}
              value={group}
              wordsOf={(each) => GROUPS[each]}
              onChange={setGroup}
            />
          </div>
          {error && <ErrorState error={error} onRetry={reload} />}
          {!data && !error && <Skeleton lines={12} />}
          {data && (
            <div class={`stack${isLoading ? " is-stale" : ""}`} aria-busy={isLoading}>
              <Totals report={data.report} />
              <Charts report={data.report} group={data.group} nameOf={nameOf} />
              {data.group !== "total" && (
                <SumTable
                  title={TITLES[data.group]}
                  rows={rowsBy(data.report.sums, (sum) => idOf(sum, data.group))}
                  nameOf={nameOf}
                />
              )}
              <SumTable
                title="Days"
                rows={rowsBy(data.report.sums, (sum) => sum.day ?? "").sort((a, b) => (a.id < b.id ? 1 : -1))}
                nameOf={(day) => day}
              />
            </div>
          )}
        </>
      )}
      {may("admin") && config.value?.auth !== "none" && <BudgetTable keys={known} hasSums={!error} />}
    </div>
  );
}

async function readAgentNames(signal: AbortSignal): Promise<ReadonlyMap<string, string>> {
  const { data } = await get("/v1/agents", { query: { limit: 100 }, signal });
  return new Map(data.map(({ agent_id, agent_config }) => [agent_id, agent_config.name ?? ""]));
}

function NotEnabled(): JSX.Element {
  return (
    <EmptyState title="Usage is not summed">
      <p>
        {config.value?.local ? (
          <>
            Start with <code>STINT_USAGE_SUMS=true make run</code>.
          </>
        ) : (
          <>
            Deploy with the parameter <code>UsageSums=true</code>.
          </>
        )}{" "}
        Each run then costs one more write unit. Earlier runs are not in the sums.
      </p>
    </EmptyState>
  );
}

function Totals({ report }: { report: Report }): JSX.Element {
  const total = useMemo(() => rowsBy(report.sums, () => "")[0], [report]);
  return (
    <dl class="totals">
      <Total name="Dollars">
        {total?.dollars === null ? "Hidden" : formatDollars(Math.round((total?.dollars ?? 0) * 1e6) / 1e6)}
      </Total>
      <Total name="Input tokens">{formatCount(total?.input ?? 0)}</Total>
      <Total name="Output tokens">{formatCount(total?.output ?? 0)}</Total>
      <Total name="Runs">{formatCount(total?.runs ?? 0)}</Total>
    </dl>
  );
}

function Total({ name, children }: { name: string; children: ComponentChildren }): JSX.Element {
  return (
    <div class="card">
      <dt>{name}</dt>
      <dd class="number">{children}</dd>
    </div>
  );
}

interface ChoiceProps<T extends string | number> {
  legend: string;
  values: readonly T[];
  value: T;
  wordsOf: (value: T) => string;
  onChange: (value: T) => void;
}

/** Radio buttons in a row. */
function Choice<T extends string | number>({ legend, values, value, wordsOf, onChange }: ChoiceProps<T>): JSX.Element {
  return (
    <fieldset class="segments">
      <legend class="visually-hidden">{legend}</legend>
      {values.map((each) => (
        <label key={each}>
          <input
            class="visually-hidden"
            type="radio"
            name={legend}
            checked={each === value}
            onChange={() => onChange(each)}
          />
          <span>{wordsOf(each)}</span>
        </label>
      ))}
    </fieldset>
  );
}
