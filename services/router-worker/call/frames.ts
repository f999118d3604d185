import type { Retention } from '#bus/bus.ts';
import { errorFrame, sseFrame, textFrame } from '#bus/messages/frame.ts';
import { DELTA_END, DELTA_START } from '#bus/messages/frame-reader.ts';
import type { RouterErrorBody, Usage } from '#shared/contracts/router/chat-completion.ts';
import type { ProviderPart } from '#shared/contracts/router/provider-part.ts';
import { type Answer, type CompletionHead, finishReasonOf, reasoningDetail } from './accumulate.ts';
import { errorChunkOf } from './error-chunk.ts';

/** Writes the frames of one delivery. Exactly one of `finish` and `fail` is called, last. */
export interface FrameWriter {
  /** Called per candidate. */
  begin(head: CompletionHead): void;
  /** For `debug.echo_upstream_body`. Opens the stream; is no content. */
  debug(upstreamBody: unknown): void;
  /** One frame per batch, one chunk per content part. */
  parts(parts: readonly ProviderPart[]): void;
  finish(answer: Answer, usage: Usage): void;
  fail(body: RouterErrorBody): void;
}

export interface FrameTarget {
  callId: string;
  /** Delivery number of the work item. */
  attempt: number;
  retention: FrameRetention;
  publish(frame: Uint8Array, retention: Retention): void;
  /** Called after the first content, which a reader waits for. */
  flush(): void;
}

/** Retention of frames with a head, of text frames, and of the terminal one. */
export type FrameRetention = Readonly<Record<'head' | 'text' | 'end', Retention>>;

/** A redelivery must know whether content was published; a resuming reader needs the terminal frame. */
export const forClients: FrameRetention = { head: 'at once', text: 'soon', end: 'at once' };
/** The effect's row decides whether an actor's call is executed again; its text ends up in the session's log. */
export const forActors: FrameRetention = { head: 'soon', text: 'soon', end: 'no more' };

const END_MARKER = 'data: [DONE]\n\n';
/** Frames are kept for two minutes; a reader that resumes later needs the head, too. */
const HEAD_EVERY_MS = 30_000;

/**
 * The hot path. All of a chunk but its delta is a template, built once per attempt. After a frame with the head, a token travels as text alone, and readers
 * complete it (ADR 30). Empty keys of a delta are omitted: null there makes real clients throw.
 */
export function frameWriter({ callId, attempt, retention, publish, flush }: FrameTarget): FrameWriter {
  let head: CompletionHead | null = null;
  let deltaStart = '';
  let seq = 0;
  let hasRole = false;
  let headAtMs = Number.NEGATIVE_INFINITY;

  const next = () => {
    seq += 1;
    return seq;
  };
  const chunk = (delta: string) => `${deltaStart}${delta}${DELTA_END}`;
  /** The chunk with the role: once, before any other. */
  const role = () => {
    if (hasRole) return '';
    hasRole = true;
    return chunk('{"role":"assistant","content":""}');
  };
  const currentHead = (): CompletionHead => {
    if (head === null) throw new TypeError('begin() has to be called before a frame is written');
    return head;
  };

  return {
    begin(started) {
      head = started;
      deltaStart = `${chunkStart(started)}${DELTA_START}`;
    },
    debug(upstreamBody) {
      const events = `${chunkStart(currentHead())},"choices":[],"debug":{"echo_upstream_body":${JSON.stringify(upstreamBody)}}}\n\n`;
      publish(sseFrame('open', callId, attempt, next(), events), retention.head);
    },
    parts(parts) {
      const nowMs = performance.now();
      const isHeadSent = nowMs - headAtMs < HEAD_EVERY_MS;
      const text = isHeadSent ? onlyTextIn(parts) : null;
      if (text !== null) {
        publish(textFrame(attempt, next(), JSON.stringify(text)), retention.text);
        return;
      }
      let events = '';
      for (const part of parts) {
        const delta = deltaOf(part);
        if (delta === null) continue;
        events += role();
        events += part.type === 'text-delta' && part.logprobs !== undefined ? chunkWithLogprobs(deltaStart, delta, part.logprobs) : chunk(delta);
      }
      if (events === '') return;
      const isFirst = headAtMs === Number.NEGATIVE_INFINITY;
      if (!isHeadSent) headAtMs = nowMs;
      publish(sseFrame('content', callId, attempt, next(), events), isHeadSent ? retention.text : retention.head);
      if (isFirst) flush();
    },
    finish(answer, usage) {
      const start = chunkStart(currentHead());
      const ending = `"finish_reason":"${finishReasonOf(answer)}","native_finish_reason":${JSON.stringify(answer.nativeReason)},"logprobs":null`;
      const finish = `${deltaStart}{"content":""},${ending}}]}\n\n`;
      const last = `${start},"choices":[],"usage":${JSON.stringify(usage)}}\n\n`;
      publish(sseFrame('done', callId, attempt, next(), `${role()}${finish}${last}${END_MARKER}`), retention.end);
    },
    fail(body) {
      const events = `data: ${JSON.stringify(errorChunkOf(body, currentHead()))}\n\n`;
      publish(errorFrame(callId, attempt, next(), body.error.code, JSON.stringify(body), events), retention.end);
    },
  };
}

function chunkStart({ id, created, model, provider }: CompletionHead): string {
  return `data: {"id":${JSON.stringify(id)},"object":"chat.completion.chunk","created":${created},"model":${JSON.stringify(model)},"provider":${JSON.stringify(provider)}`;
}

/** Null unless the batch is one plain text part, as nearly all are. */
function onlyTextIn(parts: readonly ProviderPart[]): string | null {
  const [part] = parts;
  return parts.length === 1 && part?.type === 'text-delta' && part.logprobs === undefined ? part.text : null;
}

/** JSON; null for parts without content. */
function deltaOf(part: ProviderPart): string | null {
  switch (part.type) {
    case 'text-delta':
      return `{"content":${JSON.stringify(part.text)}}`;
    case 'reasoning-delta':
      return `{"reasoning":${JSON.stringify(part.text)},"reasoning_details":[${JSON.stringify(reasoningDetail(part.text))}]}`;
    case 'refusal-delta':
      return `{"refusal":${JSON.stringify(part.text)}}`;
    case 'tool-call-start':
      return `{"tool_calls":[{"index":${part.index},"id":${JSON.stringify(part.id)},"type":"function","function":{"name":${JSON.stringify(part.name)},"arguments":""}}]}`;
    case 'tool-call-delta':
      return `{"tool_calls":[{"index":${part.index},"function":{"arguments":${JSON.stringify(part.arguments)}}}]}`;
    case 'usage':
    case 'finish':
      return null;
  }
}

function chunkWithLogprobs(deltaStart: string, delta: string, logprobs: unknown): string {
  return `${deltaStart}${delta},"finish_reason":null,"native_finish_reason":null,"logprobs":${JSON.stringify(logprobs)}}]}\n\n`;
}
