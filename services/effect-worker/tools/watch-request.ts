import { ByteBudget } from './byte-budget.ts';
import { ToolFailure } from './tool-failure.ts';
import { MAX_RESPONSE_BYTES, type RequestWatch } from './watched-fetch.ts';

/** How long the last events of a stream may be on their way through the client after the stream has ended. */
const LOST_AFTER_MS = 500;
/** How long a stream that can be resumed may take for it. */
const RESUMED_WITHIN_MS = 10_000;

export interface RequestLimits {
  /** Whoever waits for the request has no use for it any more. */
  signal: AbortSignal;
  /** Begins anew with each sign of progress. */
  timeoutMs: number;
  /** However much progress there is. */
  longestMs: number;
  /** Of what is read for the request; absent, an answer may have its usual size. */
  budget?: ByteBudget;
}

/** What was seen of a request when it failed. */
export interface RequestProgress {
  sent: boolean;
  retryAfterMs: number | null;
}

/** One request under watch. Whatever ends it first is its failure; the client is then told to stop waiting. */
export interface WatchedRequest {
  watch: RequestWatch;
  progress: RequestProgress;
  /** Null while nothing has ended it from outside. */
  failure(): ToolFailure | null;
  fail(failure: ToolFailure): void;
  onProgress(): void;
  /** The answer's stream names its events: a client that loses it can ask for the rest. */
  onResumable(): void;
  /** It has ended by itself. */
  stop(): void;
}

export function watchRequest({ signal, timeoutMs, longestMs, budget = new ByteBudget(MAX_RESPONSE_BYTES) }: RequestLimits): WatchedRequest {
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
  const onAbort = () => fail(new ToolFailure('stopped', 'the call was given up', { sent: progress.sent }));
  const soonest = setTimeout(onTimeout, timeoutMs);
  const latest = setTimeout(onTimeout, longestMs);
  if (signal.aborted) onAbort();
  signal.addEventListener('abort', onAbort, { once: true });

  return {
    watch: {
      signal: controller.signal,
      budget,
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
