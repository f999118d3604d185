import type { ReasoningDetail, Usage } from '../../contracts/router/chat-completion.ts';
import type { ProviderPart } from '../../contracts/router/provider-part.ts';
import { type Answer, finishReasonOf } from '../answer.ts';
import type { AnswerHead, PartWriter, Template } from '../surface.ts';
import { imageOf } from './image-of.ts';
import { detailOf, plainDetail } from './reasoning-detail.ts';

/** Between the start of a chunk and its delta, and after the delta, when the chunk has nothing else. */
const DELTA_START = ',"choices":[{"index":0,"delta":';
const DELTA_END = ',"finish_reason":null,"native_finish_reason":null,"logprobs":null}]}\n\n';
const END_MARKER = 'data: [DONE]\n\n';

/** Writes chunks. Empty keys of a delta are omitted: null there makes real clients throw. */
export class ChunkWriter implements PartWriter {
  readonly #start: string;
  readonly #deltaStart: string;
  #hasRole = false;

  constructor(head: AnswerHead) {
    this.#start = chunkStart(head);
    this.#deltaStart = `${this.#start}${DELTA_START}`;
  }

  get template(): Template {
    return { prefix: `${this.#deltaStart}{"content":`, suffix: `}${DELTA_END}` };
  }

  text(parts: readonly ProviderPart[]): string | null {
    const part = parts[0] as ProviderPart;
    return parts.length === 1 && part.type === 'text-delta' && part.logprobs === undefined ? JSON.stringify(part.text) : null;
  }

  parts(parts: readonly ProviderPart[]): string {
    let events = '';
    for (const part of parts) {
      const delta = deltaOf(part);
      if (delta === null) continue;
      events += this.#role();
      events += part.type === 'text-delta' && part.logprobs !== undefined ? this.#chunkWithLogprobs(delta, part.logprobs) : this.#chunk(delta);
    }
    return events;
  }

  debug(upstreamBody: unknown): string {
    return `${this.#start},"choices":[],"debug":{"echo_upstream_body":${JSON.stringify(upstreamBody)}}}\n\n`;
  }

  done(answer: Answer, usage: Usage): string {
    const reasons = `"finish_reason":"${finishReasonOf(answer)}","native_finish_reason":${JSON.stringify(answer.nativeReason)},"logprobs":null`;
    const finish = `${this.#deltaStart}{"content":""},${reasons}}]}\n\n`;
    const last = `${this.#start},"choices":[],"usage":${JSON.stringify(usage)}}\n\n`;
    return `${this.#role()}${finish}${last}${END_MARKER}`;
  }

  #chunk(delta: string): string {
    return `${this.#deltaStart}${delta}${DELTA_END}`;
  }

  #chunkWithLogprobs(delta: string, logprobs: unknown): string {
    return `${this.#deltaStart}${delta},"finish_reason":null,"native_finish_reason":null,"logprobs":${JSON.stringify(logprobs)}}]}\n\n`;
  }

  /** The chunk with the role: once, before any other. */
  #role(): string {
    if (this.#hasRole) return '';
    this.#hasRole = true;
    return this.#chunk('{"role":"assistant","content":""}');
  }
}

function chunkStart({ id, created, model, provider }: AnswerHead): string {
  return `data: {"id":${JSON.stringify(id)},"object":"chat.completion.chunk","created":${created},"model":${JSON.stringify(model)},"provider":${JSON.stringify(provider)}`;
}

/** JSON; null for parts without content. */
function deltaOf(part: ProviderPart): string | null {
  switch (part.type) {
    case 'text-delta':
      return `{"content":${JSON.stringify(part.text)}}`;
    case 'reasoning-delta':
      return reasoningDelta(
        part.text,
        part.block === undefined ? plainDetail(part.text) : detailOf({ ...part, type: 'text', signature: null, block: part.block }),
      );
    case 'reasoning-summary-delta':
      return reasoningDelta(part.text, detailOf({ ...part, type: 'summary' }));
    case 'reasoning-signature':
      return `{"reasoning_details":[${JSON.stringify(detailOf({ ...part, type: 'text', text: '' }))}]}`;
    case 'reasoning-encrypted':
      return `{"reasoning_details":[${JSON.stringify(detailOf({ ...part, type: 'encrypted' }))}]}`;
    case 'annotation':
      return `{"annotations":[${JSON.stringify(part.annotation)}]}`;
    case 'image':
      return `{"images":[${JSON.stringify(imageOf(part.url))}]}`;
    case 'refusal-delta':
      return `{"refusal":${JSON.stringify(part.text)}}`;
    case 'tool-call-start':
      return `{"tool_calls":[{"index":${part.index},"id":${JSON.stringify(part.id)},"type":"function","function":{"name":${JSON.stringify(part.name)},"arguments":""}}]}`;
    case 'tool-call-delta':
      return `{"tool_calls":[{"index":${part.index},"function":{"arguments":${JSON.stringify(part.arguments)}}}]}`;
    // The API has no field for audio of an answer, nor for the upstream's own tools.
    case 'audio-delta':
    case 'server-tool-call':
    case 'server-tool-result':
    case 'usage':
    case 'finish':
      return null;
  }
}

function reasoningDelta(text: string, detail: ReasoningDetail): string {
  return `{"reasoning":${JSON.stringify(text)},"reasoning_details":[${JSON.stringify(detail)}]}`;
}
