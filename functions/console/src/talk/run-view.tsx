/** A message and what came of it. */
import type { ComponentChildren, JSX } from "preact";
import { useState } from "preact/hooks";
import { Button } from "../components/button";
import { ErrorState } from "../components/states";
import { WindowList } from "../components/window-list";
import type { ApiError } from "../errors";
import { cut } from "../format";
import { Link } from "../router";
import { reconnectingWords } from "../session";
import { Images, PartView } from "./part-view";
import type { Run, Sent } from "./run";

interface RunViewProps<D, E> {
  run: Run<D, E>;
  /** Time, tokens, money, state. */
  facts: (document: D) => JSX.Element;
  /** The error in a stored run. */
  failureOf: (document: D) => ApiError | null;
  onRejoin: () => void;
  /** Its request, if this page has it, can be sent once more. */
  onSendAgain: (() => void) | null;
  /** The page with its steps on one axis. */
  timeline: string | null;
  /** The run as JSON and code. */
  code: (document: D) => ComponentChildren;
  /** What the run waits for. */
  children?: ComponentChildren;
}

export function RunView<D, E>(props: RunViewProps<D, E>): JSX.Element {
  const { run, facts, failureOf, onRejoin, onSendAgain, timeline, code, children } = props;
  const [isCode, setCode] = useState(false);
  const { phase, isReconnecting, document, error, id } = run.state.value;
  const parts = run.transcript.parts.value;
  const isRunning = phase !== "ended";
  const failure = document ? failureOf(document) : error;
  const isLost = error !== null && document === null && id !== null;
  return (
    <article class="run">
      <SentView sent={run.sent.value} />
      <div class="run-answer" aria-busy={isRunning}>
        <WindowList items={parts} keyOf={(part) => part.id} noun="steps" class="parts">
          {(part) => <PartView part={part} />}
        </WindowList>
        <p class="run-state hint" role="status">
          {isReconnecting && reconnectingWords()}
          {!isReconnecting && phase === "sending" && "Sent. Waiting for its turn to start …"}
          {!isReconnecting && phase === "running" && parts.length === 0 && "Waiting for the model …"}
          {!isReconnecting && phase === "running" && parts.length > 0 && "Running …"}
        </p>
        {!isRunning && failure && <ErrorState error={failure} {...(isLost && { onRetry: onRejoin })} />}
        {!isRunning && document && error && error !== failure && !failure && <ErrorState error={error} />}
        {children}
        {isCode && document && <div class="stack">{code(document)}</div>}
        {!isRunning && !isLost && (
          <div class="run-foot">
            {document && facts(document)}
            <div class="run-actions">
              {onSendAgain && (
                <Button kind="quiet" onClick={onSendAgain}>
                  Send again
                </Button>
              )}
              {timeline && (
                <Link class="button button-quiet" to={timeline}>
                  Timeline
                </Link>
              )}
              {document && (
                <Button kind="quiet" aria-expanded={isCode} onClick={() => setCode(!isCode)}>
                  JSON and code
                </Button>
              )}
            </div>
          </div>
        )}
      </div>
    </article>
  );
}

/** Long messages open at a press. */
const SHOWN = 4000;

function SentView({ sent }: { sent: readonly Sent[] }): JSX.Element {
  return (
    <div class="sent">
      {sent.slice(0, 20).map(({ text, documents, images }, index) => (
        <div key={index} class="sent-message">
          {text && <p class="message-of-user">{cut(text, SHOWN)}</p>}
          {images.length > 0 && <Images sources={images} />}
          {documents.length > 0 && (
            <ul class="attachments" aria-label="Documents">
              {documents.map((name, at) => (
                <li key={at}>
                  <span class="attachment-name">{name}</span>
                </li>
              ))}
            </ul>
          )}
        </div>
      ))}
    </div>
  );
}

export function StopButton({ isStopping, onStop }: { isStopping: boolean; onStop: () => void }): JSX.Element {
  return (
    <Button kind="danger" busy={isStopping} onClick={onStop}>
      Stop
    </Button>
  );
}
