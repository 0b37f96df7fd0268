import type { JSX } from "preact";
import { PageHead } from "../../components/head";
import { Tabs } from "../../components/tabs";
import { fillPath } from "../../router";

export const storePath = (store: string, part = ""): string => fillPath(`/knowledge/stores/:store${part}`, { store });

export const documentPath = (store: string, file: string): string =>
  fillPath("/knowledge/stores/:store/files/:file", { store, file });

export function KnowledgeHead(): JSX.Element {
  return (
    <>
      <PageHead title="Knowledge" lead="What agents and responses can search." />
      <Tabs
        label="Parts of Knowledge"
        tabs={[
          { to: "/knowledge", title: "Vector stores" },
          { to: "/knowledge/files", title: "Files" },
        ]}
      />
    </>
  );
}
