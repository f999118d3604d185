import { ByteBudget } from './byte-budget.ts';
import { lostBeforeAnswer, ToolFailure } from './tool-failure.ts';
import { MAX_RESPONSE_BYTES, type RequestWatch } from './watched-fetch.ts';

/** For the client to open a resumed stream. */
const RESUMED_WITHIN_MS = 10_000;
/**
 * Of a process that is busy: each of its ticks may bring a little, though the server is late. Ticks that bring more are not counted, as they read what has
 * arrived meanwhile: the response's budget bounds them.
 */
const MAX_TICKS_READING = 100;
const LITTLE_BYTES = 4_096;

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

/**
 * Starts to watch a request, or the several requests of a handshake: time limits, abort, and the end of response streams. A process that was paused or
 * starved reads on until a tick of the event loop brings nothing, for at most 100 ticks that bring a little, before anything is late: its timers come before what has arrived meanwhile.
 */
export function watchRequest({ signal, timeoutMs, longestMs, budget = new ByteBudget(MAX_RESPONSE_BYTES), onId = () => {} }: RequestLimits): WatchedRequest {
  const controller = new AbortController();
  const progress: RequestProgress = { sent: false, retryAfterMs: null };
  let failure: ToolFailure | null = null;
  let isResumable = false;
  let isOver = false;
  let messages = 0;
  let streams = 0;
  let reads = 0;
  let readBytes = 0;
  let resuming: NodeJS.Timeout | undefined;

  const fail = (why: ToolFailure) => {
    if (failure !== null || isOver) return;
    failure = why;
    controller.abort(why);
  };
  const onTimeout = () => fail(new ToolFailure('timeout', 'the tool server did not answer in time', { sent: progress.sent }));
  const onAbort = () => fail(new ToolFailure('stopped', 'the call was cancelled', { sent: progress.sent }));
  const onLost = () => fail(lostBeforeAnswer());
  /** Calls `end` behind the first tick without a read, or the last of `ticks`, unless what was waited for has come. */
  const whenSilent = (isAwaited: () => boolean, end: () => void, ticks = MAX_TICKS_READING): void => {
    const [readsBefore, bytesBefore] = [reads, readBytes];
    setImmediate(() => {
      if (isOver || !isAwaited()) return;
      if (reads === readsBefore || ticks <= 1) end();
      else whenSilent(isAwaited, end, readBytes - bytesBefore > LITTLE_BYTES ? ticks : ticks - 1);
    });
  };
  let isProgressDue = false;
  const onSoonest = () => {
    isProgressDue = true;
    whenSilent(() => isProgressDue, onTimeout);
  };
  const soonest = setTimeout(onSoonest, timeoutMs);
  const latest = setTimeout(() => whenSilent(() => true, onTimeout), longestMs);
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
      onMessage: () => {
        messages += 1;
        const message = messages;
        // Its promise settles within a tick of the delivery. In a handshake, another message was sent meanwhile if the answer has come.
        return (unanswered) => void setImmediate(() => (message === messages ? fail(unanswered) : undefined));
      },
      onRead: (sizeBytes) => {
        reads += 1;
        readBytes += sizeBytes;
      },
      get streams() {
        return streams;
      },
      onStreamOpened: () => {
        streams += 1;
        clearTimeout(resuming);
        resuming = undefined;
      },
      onStreamEnded: (cut) => {
        if (cut !== null) return fail(cut);
        clearTimeout(resuming);
        if (isOver || !isResumable) return;
        const ended: NodeJS.Timeout = setTimeout(() => whenSilent(() => resuming === ended, onLost), RESUMED_WITHIN_MS);
        resuming = ended;
      },
    },
    progress,
    failure: () => failure,
    fail,
    onProgress: () => {
      isProgressDue = false;
      soonest.refresh();
    },
    onResumable: () => {
      isResumable = true;
    },
    stop: () => {
      isOver = true;
      clearTimeout(soonest);
      clearTimeout(latest);
      clearTimeout(resuming);
      signal.removeEventListener('abort', onAbort);
    },
  };
}
