import type { JSX } from "preact";
import { PageHead } from "../../components/head";
import { Tabs } from "../../components/tabs";

export function ModelsHead(): JSX.Element {
  return (
    <>
      <PageHead title="Models" lead="Language models, embedding models, and shields." />
      <Tabs
        label="Parts of Models"
        tabs={[
          { to: "/models", title: "Models" },
          { to: "/models/providers", title: "Providers" },
          { to: "/models/shields", title: "Shields" },
        ]}
      />
    </>
  );
}
