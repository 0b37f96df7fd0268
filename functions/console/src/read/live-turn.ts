/** A turn as stored, followed while it runs. */
import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { get } from "../api";
import { type ApiError, toApiError } from "../errors";
import { followTurn, type Turn, type TurnPlace } from "../turns";
import { API_TURN } from "./paths";
import { timeOf, type TurnStep } from "./steps";

export interface LiveTurn {
  turn: Turn | null;
  /** The step that runs. */
  running: { id: string; type: string; start: number; text: string } | null;
  isFollowed: boolean;
  error: ApiError | null;
}

const NOTHING: LiveTurn = { turn: null, running: null, isFollowed: false, error: null };

/** The end of the text of a running step is shown. */
const TAIL = 2000;

/** Read a turn, and follow it by its events until it ends. All changes of a frame are shown at once. */
export function useLiveTurn(at: TurnPlace, turnId: string): LiveTurn & { reload: () => void } {
  const [state, setState] = useState(NOTHING);
  const stop = useRef(new AbortController());
  const reload = useCallback(() => {
    stop.current.abort();
    const { signal } = (stop.current = new AbortController());
    let next = NOTHING;
    let frame = 0;
    const update = (changes: Partial<LiveTurn>) => {
      next = { ...next, ...changes };
      frame ||= requestAnimationFrame(() => {
        frame = 0;
        if (!signal.aborted) setState(next);
      });
    };
    const params = { ...at, turn_id: turnId };
    const run = async () => {
      const turn = await get(API_TURN, { params, signal });
      update({ turn, error: null });
      if (turn.status !== "in_progress") return;
      update({ isFollowed: true });
      const known = new Map<string, TurnStep>(turn.steps.map((step) => [step.step_id, step]));
      for await (const payload of followTurn(at, turnId, null, { signal })) {
        switch (payload.event_type) {
          case "step_start":
            if (!known.has(payload.step_id))
              update({
                running: { id: payload.step_id, type: payload.step_type, start: timeOfId(payload.step_id), text: "" },
              });
            break;
          case "step_progress":
            if (next.running?.id === payload.step_id && payload.delta.type === "text")
              update({ running: { ...next.running, text: (next.running.text + payload.delta.text).slice(-TAIL) } });
            break;
          case "step_complete":
            known.set(payload.step_id, payload.step_details);
            update({ turn: { ...next.turn!, steps: inOrder([...known.values()]) }, running: null });
            break;
          case "turn_complete":
          case "turn_awaiting_input":
            update({ running: null, isFollowed: false });
        }
      }
      update({ turn: await get(API_TURN, { params, signal }), running: null, isFollowed: false });
    };
    run().catch(async (failure: unknown) => {
      const error = toApiError(failure);
      if (signal.aborted || error.code === "aborted") return;
      // A turn that fails ends its stream with its error, which the stored turn has, too.
      const turn = next.turn && (await get(API_TURN, { params, signal }).catch(() => null));
      if (turn && turn.status !== "in_progress") update({ turn, running: null, isFollowed: false });
      else update({ error, isFollowed: false });
    });
  }, [at.agent_id, at.session_id, turnId]);
  useEffect(() => {
    setState(NOTHING);
    reload();
    return () => stop.current.abort();
  }, [reload]);
  return { ...state, reload };
}

/** Return the time at which an id was made: ids begin with it. */
function timeOfId(id: string): number {
  const time = Number.parseInt(id.replace("-", "").slice(0, 12), 16);
  return Number.isNaN(time) ? Date.now() : time;
}

function inOrder(steps: TurnStep[]): TurnStep[] {
  return steps.sort((one, other) => timeOf(one.started_at) - timeOf(other.started_at));
}

/** Return the time, which advances while something runs. */
export function useClock(isRunning: boolean): number {
  const [now, setNow] = useState(Date.now());
  useEffect(() => {
    if (!isRunning) return;
    const timer = setInterval(() => setNow(Date.now()), 500);
    return () => clearInterval(timer);
  }, [isRunning]);
  return now;
}
