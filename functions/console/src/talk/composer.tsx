/** Where a message is written, with its files. */
import type { ComponentChildren, JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { Button } from "../components/button";
import { ErrorState } from "../components/states";
import { type ApiError, toApiError } from "../errors";
import { formatBytes } from "../format";
import { type Attachment, isImage, readFiles } from "./attachments";
import { useDraft } from "./draft";

export interface Message {
  text: string;
  attachments: readonly Attachment[];
}

export interface Composer extends Message {
  setText: (text: string) => void;
  setAttachments: (attachments: readonly Attachment[]) => void;
  /** Show a message no more, but keep its text in this tab until it has arrived. Another message stays. */
  hide: (message: Message) => void;
  arrived: () => void;
  /** Show a message again that did not arrive. Return false if another one was begun. */
  restore: (message: Message) => boolean;
}

/** Keep a message of this tab under a name. Files are kept as long as the page. */
export function useComposer(name: string): Composer {
  const draft = useDraft(name);
  const [attachments, setAttachments] = useState<readonly Attachment[]>([]);
  const isEmpty = useRef(true);
  isEmpty.current = draft.text === "" && attachments.length === 0;
  return {
    text: draft.text,
    attachments,
    setText: draft.set,
    setAttachments,
    hide: (message) => {
      if (message.text !== draft.text || message.attachments !== attachments) return;
      draft.hide();
      setAttachments([]);
    },
    arrived: draft.forget,
    restore: (message) => {
      if (!isEmpty.current) return false;
      draft.set(message.text);
      setAttachments(message.attachments);
      return true;
    },
  };
}

interface ComposerFormProps {
  composer: Composer;
  label: string;
  onSend: (message: Message) => void;
  /** Beside the button to send: to stop. */
  actions?: ComponentChildren;
  /** Why nothing can be sent at the moment. */
  blocked?: string | undefined;
  /** Settings of the message. */
  children?: ComponentChildren;
  error: ApiError | null;
  onRetry?: (() => void) | undefined;
}

export function ComposerForm(props: ComposerFormProps): JSX.Element {
  const { composer, label, onSend, actions, blocked, children, error, onRetry } = props;
  const { text, attachments } = composer;
  const [fileError, setFileError] = useState<ApiError | null>(null);
  const input = useRef<HTMLInputElement>(null);
  const add = (files: readonly File[]) => {
    setFileError(null);
    readFiles(files, attachments).then(
      (read) => composer.setAttachments([...attachments, ...read]),
      (failure: unknown) => setFileError(toApiError(failure)),
    );
  };
  const isOver = useDrop(add);
  const canSend = !blocked && (text.trim() !== "" || attachments.length > 0);
  const submit = (event?: Event) => {
    event?.preventDefault();
    if (canSend) onSend({ text, attachments });
  };
  const shown = fileError ?? error;
  return (
    <form class={`composer${isOver ? " is-over" : ""}`} aria-label={label} onSubmit={submit}>
      {shown && <ErrorState isChange error={shown} {...(!fileError && onRetry && { onRetry })} />}
      <AttachmentList attachments={attachments} onChange={composer.setAttachments} />
      <textarea
        aria-label="Message"
        rows={3}
        placeholder={isOver ? "Drop the files here" : "Write a message. Drop or paste files and images."}
        value={text}
        onInput={(event) => composer.setText(event.currentTarget.value)}
        onPaste={(event) => {
          const files = [...(event.clipboardData?.files ?? [])];
          if (files.length === 0) return;
          event.preventDefault();
          add(files);
        }}
        onKeyDown={(event) => {
          // A phone has no other key for a new line.
          const isSend = event.key === "Enter" && !event.shiftKey && !event.isComposing;
          if (isSend && (event.ctrlKey || event.metaKey || matchMedia("(pointer: fine)").matches)) submit(event);
        }}
      />
      <div class="composer-foot">
        <Button type="submit" kind="primary" disabled={!canSend}>
          Send
        </Button>
        {actions}
        <Button kind="quiet" onClick={() => input.current?.click()}>
          Add files
        </Button>
        {children}
        {blocked && <p class="hint">{blocked}</p>}
        <input
          ref={input}
          class="visually-hidden"
          type="file"
          multiple
          tabIndex={-1}
          aria-label="Files"
          onChange={(event) => {
            add([...(event.currentTarget.files ?? [])]);
            event.currentTarget.value = "";
          }}
        />
      </div>
    </form>
  );
}

interface AttachmentListProps {
  attachments: readonly Attachment[];
  onChange: (attachments: readonly Attachment[]) => void;
}

function AttachmentList({ attachments, onChange }: AttachmentListProps): JSX.Element | null {
  if (attachments.length === 0) return null;
  return (
    <ul class="attachments" aria-label="Files of the message">
      {attachments.map((each, index) => (
        <li key={index}>
          {isImage(each) && <img src={each.url} alt="" />}
          <span class="attachment-name">{each.name}</span>
          <span class="hint">{formatBytes(each.size)}</span>
          <Button
            kind="quiet"
            aria-label={`Remove ${each.name}`}
            onClick={() => onChange(attachments.filter((_, other) => other !== index))}
          >
            ✕
          </Button>
        </li>
      ))}
    </ul>
  );
}

/** Take files that are dropped anywhere on the page. Return whether some are held over it. */
function useDrop(onFiles: (files: readonly File[]) => void): boolean {
  const [isOver, setOver] = useState(false);
  const latest = useRef(onFiles);
  latest.current = onFiles;
  useEffect(() => {
    const hasFiles = (event: DragEvent) => event.dataTransfer?.types.includes("Files") ?? false;
    const over = (event: DragEvent) => {
      if (!hasFiles(event)) return;
      event.preventDefault();
      setOver(true);
    };
    const leave = (event: DragEvent) => {
      if (!event.relatedTarget) setOver(false);
    };
    const drop = (event: DragEvent) => {
      if (!hasFiles(event)) return;
      event.preventDefault();
      setOver(false);
      latest.current([...(event.dataTransfer?.files ?? [])]);
    };
    window.addEventListener("dragover", over);
    window.addEventListener("dragleave", leave);
    window.addEventListener("drop", drop);
    return () => {
      window.removeEventListener("dragover", over);
      window.removeEventListener("dragleave", leave);
      window.removeEventListener("drop", drop);
    };
  }, []);
  return isOver;
}
