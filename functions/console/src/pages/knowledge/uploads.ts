/** Files on their way to the server, two at a time. */
import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { ApiError, toApiError } from "../../errors";
import { uploadFile, type UploadedFile } from "../../upload";

const AT_ONCE = 2;

export interface Upload {
  id: number;
  file: File;
  state: "waiting" | "sending" | "finishing" | "done" | "failed";
  sent: number;
  error: ApiError | null;
}

export interface Uploads {
  all: readonly Upload[];
  add: (files: Iterable<File>) => void;
  /** Stop an upload, or forget one that has ended. */
  drop: (id: number) => void;
  retry: (id: number) => void;
}

/** Upload files, and do something with each, such as adding it to a store. */
export function useUploads(finish: (file: UploadedFile) => Promise<void>): Uploads {
  const [all, setAll] = useState<readonly Upload[]>([]);
  const stops = useRef(new Map<number, AbortController>());
  const stored = useRef(new Map<number, UploadedFile>());
  const last = useRef(0);
  const update = useCallback((id: number, changes: Partial<Upload>) => {
    setAll((before) => before.map((each) => (each.id === id ? { ...each, ...changes } : each)));
  }, []);
  useEffect(() => {
    const running = all.filter(({ state }) => state === "sending" || state === "finishing").length;
    for (const next of all.filter(({ state }) => state === "waiting").slice(0, AT_ONCE - running)) {
      if (!stops.current.has(next.id)) void start(next);
    }
  }, [all]);
  useEffect(
    () => () => {
      for (const stop of stops.current.values()) stop.abort();
    },
    [],
  );
  const start = async ({ id, file }: Upload) => {
    const stop = new AbortController();
    stops.current.set(id, stop);
    update(id, { state: "sending", sent: 0, error: null });
    try {
      // A repetition does not send again what arrived.
      const options = { signal: stop.signal, onProgress: (sent: number) => update(id, { sent }) };
      const uploaded = stored.current.get(id) ?? (await uploadFile(file, options));
      stored.current.set(id, uploaded);
      update(id, { state: "finishing", sent: file.size });
      await finish(uploaded);
      update(id, { state: "done" });
    } catch (failure) {
      const error = toApiError(failure);
      if (error.code !== "aborted") update(id, { state: "failed", error });
    } finally {
      stops.current.delete(id);
    }
  };
  return {
    all,
    add: (files) => {
      const added = [...files].map((file) => ({
        id: (last.current += 1),
        file,
        state: "waiting" as const,
        sent: 0,
        error: null,
      }));
      setAll((before) => [...before.filter(({ state }) => state !== "done"), ...added]);
    },
    drop: (id) => {
      stops.current.get(id)?.abort();
      setAll((before) => before.filter((each) => each.id !== id));
    },
    retry: (id) => update(id, { state: "waiting", error: null }),
  };
}
