import { ByteBudget } from './byte-budget.ts';
import { ToolFailure } from './tool-failure.ts';
import { MAX_RESPONSE_BYTES, type RequestWatch } from './watched-fetch.ts';

/** For the client to deliver the last events after the stream's end. */
const LOST_AFTER_MS = 500;
/** If the stream can be resumed. */
const RESUMED_WITHIN_MS = 10_000;

export interface RequestLimits {
  /** Ends the request as `stopped`. */
  signal: AbortSignal;
  /** Restarts with each progress. */
  timeoutMs: number;
  /** In all. */
  longestMs: number;
  /** Default: `MAX_RESPONSE_BYTES`. */
  budget?: ByteBudget;
  /** Called with the request's id in JSON-RPC, before it is sent. */
  onId?(id: string): void;
}

export interface RequestProgress {
  sent: boolean;
  retryAfterMs: number | null;
}

/** Watches one request. The first failure counts, and aborts the client's wait. */
export interface WatchedRequest {
  watch: RequestWatch;
  progress: RequestProgress;
  /** Null unless the watch has ended the request. */
  failure(): ToolFailure | null;
  fail(failure: ToolFailure): void;
  onProgress(): void;
  /** The response stream has event ids, so the client can resume it. */
  onResumable(): void;
  stop(): void;
}

/** Starts to watch a request: its time limits, its abort, and the end of its response streams. */
export function watchRequest({ signal, timeoutMs, longestMs, budget = new ByteBudget(MAX_RESPONSE_BYTES), onId = () => {} }: RequestLimits): WatchedRequest {
  const controller = new AbortController();
  const progress: RequestProgress = { sent: false, retryAfterMs: null };
  let failure: ToolFailure | null = null;
  let isResumable = false;
  let isOver = false;
  let lost: NodeJS.Timeout | undefined;

  const fail = (why: ToolFailure) => {
    if (failure !== null || isOver) return;
    failure = why;
    controller.abort(why);
  };
  const onTimeout = () => fail(new ToolFailure('timeout', 'the tool server did not answer in time', { sent: progress.sent }));
  const onAbort = () => fail(new ToolFailure('stopped', 'the call was cancelled', { sent: progress.sent }));
  const soonest = setTimeout(onTimeout, timeoutMs);
  const latest = setTimeout(onTimeout, longestMs);
  if (signal.aborted) onAbort();
  signal.addEventListener('abort', onAbort, { once: true });

  return {
    watch: {
      signal: controller.signal,
      budget,
      onId,
      onSent: () => {
        progress.sent = true;
      },
      onRetryAfter: (waitMs) => {
        progress.retryAfterMs = waitMs;
      },
      onStreamOpened: () => clearTimeout(lost),
      onStreamEnded: (cut) => {
        if (cut !== null) return fail(cut);
        clearTimeout(lost);
        if (isOver) return;
        const why = 'the connection to the tool server was lost before its answer';
        lost = setTimeout(() => fail(new ToolFailure('lost', why, { sent: true })), isResumable ? RESUMED_WITHIN_MS : LOST_AFTER_MS);
      },
    },
    progress,
    failure: () => failure,
    fail,
    onProgress: () => {
      soonest.refresh();
    },
    onResumable: () => {
      isResumable = true;
    },
    stop: () => {
      isOver = true;
      clearTimeout(soonest);
      clearTimeout(latest);
      clearTimeout(lost);
      signal.removeEventListener('abort', onAbort);
    },
  };
}
