import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { type Column, Table } from "../../components/list";
import { EmptyState } from "../../components/states";
import { Money } from "../../components/values";
import { formatCount } from "../../format";
import type { Row } from "./report";

const PAGE = 7;

interface SumTableProps {
  title: string;
  rows: readonly Row[];
  nameOf: (id: string) => string;
}

/** The numbers of the charts. */
export function SumTable({ title, rows, nameOf }: SumTableProps): JSX.Element {
  const [shown, setShown] = useState(PAGE);
  const columns: Column<Row>[] = [
    { title: title.replace(/s$/, ""), cell: (row) => <bdi class="long-text">{nameOf(row.id)}</bdi> },
    { title: "Runs", isNumber: true, cell: (row) => formatCount(row.runs) },
    { title: "Input tokens", isNumber: true, cell: (row) => formatCount(row.input) },
    { title: "From a cache", isNumber: true, cell: (row) => formatCount(row.cached) },
    { title: "Output tokens", isNumber: true, cell: (row) => formatCount(row.output) },
    {
      title: "Dollars",
      isNumber: true,
      cell: (row) => (row.dollars === null ? "hidden" : <Money dollars={Math.round(row.dollars * 1e6) / 1e6} />),
    },
  ];
  const paged = {
    items: rows.slice(0, shown),
    hasMore: rows.length > shown,
    isLoading: false,
    error: null,
    loadMore: () => setShown(shown + 100),
    reload: () => undefined,
  };
  return (
    <section class="stack">
      <h2>{title}</h2>
      <Table
        caption={`Tokens and dollars: ${title}`}
        columns={columns}
        paged={paged}
        keyOf={(row) => row.id}
        empty={<EmptyState title="Nothing was used in these days" />}
      />
    </section>
  );
}
