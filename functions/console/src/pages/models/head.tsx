import type { JSX } from "preact";
import { Tabs } from "../../components/tabs";

export function ModelsHead(): JSX.Element {
  return (
    <>
      <header class="page-head">
        <h1>Models</h1>
        <p class="lead">What answers, what embeds, and what checks.</p>
      </header>
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
