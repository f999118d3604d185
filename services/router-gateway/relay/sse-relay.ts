import { type ErrorFrame, eventsIn } from '#bus/messages/frame.ts';
import type { RouterErrorBody } from '#shared/contracts/router/chat-completion.ts';
import type { Deadline } from '#shared/deadlines.ts';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import { SseWriter } from '#shared/http-server/sse-writer.ts';
import { chatCompletions } from '#shared/surfaces/chat-completions/surface.ts';
import type { Surface } from '#shared/surfaces/surface.ts';
import { IGNORED_HEADER } from '../ignored-fields.ts';
import { errorReply } from '../plugins/error-reply.ts';
import { errorBodyIn, errorEvent } from './error-event.ts';
import { type FeedDeps, FrameFeed, type FrameSink, type OtherFrame } from './frame-feed.ts';
import type { OpenRelay, RelayedCall } from './relay.ts';
import { surfaceOfEvents } from './surface-of-events.ts';
import { type WholeResponse, wholeResponse } from './whole-response.ts';

const COMMENT = ': SWITCHYARD PROCESSING\n\n';
const OTHER_API = 'Last-Event-ID names an event of a stream of another API: repeat the request at the path where the stream began';

/** Streams a call's frames to the client. A client that leaves aborts the call; one that we cut off may resume it. */
export const relayStream: OpenRelay = (deps, call) => {
  const leave = () => feed.leave('dropped');
  const sink = new SseSink(deps, call, leave);
  const feed: FrameFeed = new FrameFeed(deps, call, sink);
  call.reply.raw.on('close', () => {
    feed.leave('left');
    sink.onDisconnect();
  });
  return { response: sink.response, withdraw: (error) => feed.withdraw(error), isOver: () => feed.isOver };
};

/**
 * Frames of one call → SSE bytes for one client.
 *
 *   waiting ──content | done | 15 s──▶ streaming ──done──▶ ended with the worker's last bytes, `[DONE]`
 *      │                                   └──error | failure──▶ ended with the surface's error event, and nothing after it
 *      └──error | failure──▶ ended with a whole response, which has the proper status
 *
 * While waiting, frames without content are buffered: any byte would commit status 200. The client may leave in any state.
 */
class SseSink implements FrameSink {
  readonly response: Promise<WholeResponse | null>;
  readonly #deps: FeedDeps;
  readonly #call: RelayedCall;
  readonly #socket: SseWriter;
  readonly #comment: Deadline;
  #settle: { resolve(response: WholeResponse | null): void; reject(error: SwitchyardError): void } = { resolve: () => {}, reject: () => {} };
  #state: 'waiting' | 'streaming' | 'ended' = 'waiting';
  readonly #leave: () => void;
  /** Null: no event was seen that says it. */
  #surface: Surface | null;
  /** Of a resumed request: whether no event has shown yet that the stream is of its API. */
  #isApiUnchecked: boolean;
  #buffered: Uint8Array[] = [];
  #bufferedBytes = 0;
  /** Counted for surfaces whose events have numbers. */
  #writtenEvents = 0;
  /** Null after the first content, and when resumed. */
  #startedAtMs: number | null;

  /** @param leave the client gets no more, and may resume */
  constructor(deps: FeedDeps, call: RelayedCall, leave: () => void) {
    this.#deps = deps;
    this.#call = call;
    this.#leave = leave;
    this.#surface = call.surface;
    this.#isApiUnchecked = call.resumed !== undefined && call.surface !== null;
    this.#startedAtMs = call.resumed === undefined ? performance.now() : null;
    this.response = new Promise((resolve, reject) => {
      this.#settle = { resolve, reject };
    });
    const { callId, requestId, reply } = call;
    this.#socket = new SseWriter(reply.raw, deps.limits, () => {
      deps.log.warn({ call_id: callId, request_id: requestId }, 'a client was disconnected: it left too many bytes unread');
      leave();
    });
    deps.metrics.move('streamsOpen', { kind: 'router_stream' }, 1);
    this.#comment = deps.deadlines.begin(deps.limits.headerDelayMs, () => this.#write(COMMENT));
  }

  onContent(sse: Uint8Array, isText: boolean): void {
    if (this.#startedAtMs !== null) this.#measureFirst(this.#startedAtMs);
    if (this.#isRefused(sse)) return;
    this.#surface ??= surfaceOfEvents(sse) ?? chatCompletions;
    if (isText) this.#writtenEvents += 1;
    else if (this.#surface.isNumbered === true) this.#writtenEvents += eventsIn(sse);
    this.#write(sse);
  }

  onPosition(sse: Uint8Array): void {
    if (this.#isRefused(sse)) return;
    this.#surface ??= surfaceOfEvents(sse) ?? chatCompletions;
    this.#writtenEvents = this.#surface.eventsUpTo?.(sse) ?? 0;
  }

  onFrame(frame: OtherFrame, isBehindLoss = false): void {
    if (frame.kind !== 'body' && this.#isRefused(frame.sse)) return;
    switch (frame.kind) {
      case 'open':
        if (this.#state === 'waiting') this.#buffer(frame.sse);
        else this.#write(frame.sse);
        return;
      case 'done':
        this.#write(frame.sse);
        this.#endStream();
        return;
      case 'error':
        if (this.#state === 'waiting') this.#endWhole(wholeResponse(frame.status, frame.body));
        else this.#endWithError(frame, isBehindLoss);
        return;
      case 'body':
        this.#onWhole(frame.status, frame.body);
        return;
    }
  }

  /** A client of one API can't read events of another. The call goes on, so that it may be resumed at its own path. */
  #isRefused(sse: Uint8Array): boolean {
    if (!this.#isApiUnchecked) return false;
    const shown = surfaceOfEvents(sse);
    if (shown === null) return false;
    this.#isApiUnchecked = false;
    if (shown === this.#surface) return false;
    this.fail(new SwitchyardError('request.invalid', OTHER_API, { details: { param: 'last-event-id' } }));
    this.#leave();
    return true;
  }

  /** A resumed non-streaming call is answered whole, or as the only event of a stream that has begun. */
  #onWhole(status: number, body: Uint8Array): void {
    if (this.#call.resumed === undefined) this.fail(new SwitchyardError('internal', 'a whole body arrived for a call that asked for a stream'));
    else if (this.#state === 'waiting') this.#endWhole(wholeResponse(status, body));
    else {
      for (const bytes of ['data: ', body, '\n\n']) this.#write(bytes);
      this.#endStream();
    }
  }

  onNothingLeft(): void {
    // Status 200 may be committed by a keep-alive comment.
    if (this.#state === 'streaming') this.#endStream();
    else this.#endWhole({ status: 204, headers: {}, body: new Uint8Array() });
  }

  restart(): void {
    this.#buffered = [];
    this.#bufferedBytes = 0;
  }

  fail(error: SwitchyardError): void {
    const { callId, requestId } = this.#call;
    if (this.#state === 'waiting') {
      this.#end();
      this.#settle.reject(error);
      return;
    }
    // Before the headers the route logs the failure.
    this.#deps.log.warn({ err: error, call_id: callId, request_id: requestId }, 'a stream was ended with an error');
    this.#endWith(errorReply(error).body);
  }

  /** Numbers of a worker that does not know what was sent would not follow on those of this stream. */
  #endWithError(frame: ErrorFrame, isBehindLoss: boolean): void {
    const body = isBehindLoss && this.#surface?.isNumbered === true ? errorBodyIn(frame.body) : null;
    if (body !== null) {
      this.#endWith(body);
      return;
    }
    this.#write(frame.sse);
    this.#endStream();
  }

  #endWith(body: RouterErrorBody): void {
    this.#write(errorEvent(this.#call, this.#surface ?? chatCompletions, this.#deps.clock.nowMs(), body, this.#writtenEvents));
    this.#endStream();
  }

  #measureFirst(startedAtMs: number): void {
    this.#startedAtMs = null;
    this.#deps.metrics.observe('firstTokenSeconds', {}, (performance.now() - startedAtMs) / 1_000);
  }

  onDisconnect(): void {
    this.#end();
    this.#settle.resolve(null);
  }

  #buffer(sse: Uint8Array): void {
    this.#buffered.push(sse);
    this.#bufferedBytes += sse.byteLength;
    if (this.#bufferedBytes > this.#deps.limits.bufferedBytes) this.#open();
  }

  /** Commits status 200. Buffered frames go first: a debug chunk must be the first event. */
  #open(): void {
    const { callId, requestId, reply } = this.#call;
    this.#state = 'streaming';
    const ignored = reply.getHeader(IGNORED_HEADER);
    reply.hijack();
    this.#socket.open({
      'content-type': 'text/event-stream',
      'cache-control': 'no-cache',
      // Against buffering proxies.
      'x-accel-buffering': 'no',
      'x-generation-id': callId,
      'x-request-id': requestId,
      ...(ignored !== undefined && { [IGNORED_HEADER]: String(ignored) }),
    });
    for (const sse of this.#buffered) this.#socket.write(sse);
    this.restart();
    this.#settle.resolve(null);
  }

  #write(bytes: Uint8Array | string): void {
    if (this.#state === 'ended') return;
    if (this.#state === 'waiting') this.#open();
    this.#socket.write(bytes);
    this.#deps.deadlines.restart(this.#comment, this.#deps.limits.headerDelayMs);
  }

  #endStream(): void {
    if (this.#state === 'ended') return;
    this.#end();
    this.#socket.end();
  }

  #endWhole(response: WholeResponse): void {
    this.#end();
    this.#settle.resolve(response);
  }

  #end(): void {
    if (this.#state !== 'ended') this.#deps.metrics.move('streamsOpen', { kind: 'router_stream' }, -1);
    this.#state = 'ended';
    this.#deps.deadlines.stop(this.#comment);
    this.restart();
  }
}
