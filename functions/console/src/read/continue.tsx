/** Continue from a turn in a new session, which starts with copies of the turns up to that one. */
import type { JSX } from "preact";
import { useMemo, useState } from "preact/hooks";
import { get, post, type Schemas } from "../api";
import { Button } from "../components/button";
import { ErrorState } from "../components/states";
import { type ApiError, toApiError } from "../errors";
import { Link, navigate } from "../router";
import { newId } from "../talk/run";
import type { TurnPlace } from "../turns";
import { NO_TURN } from "./ids";
import { API_SESSION, sessionPath, turnPath } from "./paths";

const CONTINUED = "Continued: ";

export function ContinueButton({ at, turnId }: { at: TurnPlace; turnId: string }): JSX.Element {
  const [error, setError] = useState<ApiError | null>(null);
  const [isBusy, setBusy] = useState(false);
  // A press after a lost answer gets the session that the first one has made.
  const key = useMemo(newId, [turnId]);
  const fork = async () => {
    setBusy(true);
    setError(null);
    try {
      navigate(sessionPath(at.agent_id, await forkSession(at, turnId, key)));
    } catch (failure) {
      setError(toApiError(failure));
      setBusy(false);
    }
  };
  return (
    <>
      <Button busy={isBusy} onClick={() => void fork()}>
        Continue in a new session
      </Button>
      {error && <ErrorState error={error} onRetry={() => void fork()} />}
    </>
  );
}

async function forkSession(at: TurnPlace, turn_id: string, key: string): Promise<string> {
  const { agent_id, session_id } = at;
  const { session_name: name } = await get(API_SESSION, { params: { ...at }, query: { turn_ids: [NO_TURN] } });
  const session_name = name.startsWith(CONTINUED) ? name : `${CONTINUED}${name}`;
  const options = { params: { agent_id }, headers: { "idempotency-key": key } };
  const body = { session_name, fork_from: { session_id, turn_id } };
  return (await post("/v1/agents/{agent_id}/session", body, options)).session_id;
}

/** Say where the first turns of a session come from. */
export function Origin({ agentId, session }: { agentId: string; session: Schemas["Session"] }): JSX.Element | null {
  const from = session.forked_from;
  if (!from) return null;
  return (
    <p class="hint">
      Continues from <Link to={turnPath(agentId, from.session_id, from.turn_id)}>a turn of another session</Link>.
      {!from.complete && " Its oldest turns are not here, because they are too long for the model."}
    </p>
  );
}
