/** Running turns and responses, and the stops that end them. */
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { keepFocus } from "../components/confirm";
import { PageHead } from "../components/head";
import { RunList } from "./runs/run-list";
import { StopDialog, type Target } from "./runs/stop-dialog";
import { StopList, useStops } from "./runs/stop-list";
import { NeedsSignIn } from "./steer/gate";
import { TenantField, useTenant } from "./steer/tenant-field";

export default function RunsPage(): JSX.Element {
  return (
    <div class="page page-wide">
      <NeedsSignIn what="Running">
        <Running />
      </NeedsSignIn>
    </div>
  );
}

function Running(): JSX.Element {
  const { tenant, setTenant } = useTenant();
  const stops = useStops(tenant);
  const [target, setTarget] = useState<Target | null>(null);
  const onStopped = () => {
    stops.reload();
    keepFocus("stops");
  };
  return (
    <>
      <PageHead title="Running" lead="Turns and responses that have run for 10 seconds or more, and what is stopped." />
      <TenantField tenant={tenant} onChange={setTenant} />
      <RunList key={tenant} tenant={tenant} stops={stops.value ?? []} onStop={setTarget} />
      <StopList stops={stops} onStop={() => setTarget({ choices: [] })} />
      <StopDialog target={target} tenant={tenant} onClose={() => setTarget(null)} onStopped={onStopped} />
    </>
  );
}
