import type { AnswerAudio, ReasoningDetail, Usage } from '../../contracts/router/chat-completion.ts';
import type { ProviderPart, ResponseMetadata } from '../../contracts/router/provider-part.ts';
import { type RouterMetadata, withMetadata } from '../../contracts/router/router-metadata.ts';
import { type Answer, finishReasonOf } from '../answer.ts';
import type { EventHead, PartWriter, Template } from '../surface.ts';
import { imageOf } from './image-of.ts';
import { detailOf, plainDetail } from './reasoning-detail.ts';

/** Between the start of a chunk and its delta, and after the delta, when the chunk has nothing else. */
const DELTA_START = ',"choices":[{"index":0,"delta":';
const DELTA_END = ',"finish_reason":null,"native_finish_reason":null,"logprobs":null}]}\n\n';
const END_MARKER = 'data: [DONE]\n\n';

/** Writes chunks. Empty keys of a delta are omitted: null there makes real clients throw. */
export class ChunkWriter implements PartWriter {
  readonly #head: EventHead;
  readonly #answer: Pick<Answer, 'metadata'>;
  /** Of content chunks, once the first is written. */
  #deltaStart = '';
  #hasRole = false;

  constructor(head: EventHead, answer: Pick<Answer, 'metadata'>) {
    this.#head = head;
    this.#answer = answer;
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
      events += 'logprobs' in part && part.logprobs !== undefined ? this.#chunkWithLogprobs(delta, part.logprobs) : this.#chunk(delta);
    }
    return events;
  }

  debug(upstreamBody: unknown): string {
    return `${chunkStart(this.#head)},"choices":[],"debug":{"echo_upstream_body":${JSON.stringify(upstreamBody)}}}\n\n`;
  }

  done(answer: Answer, usage: Usage, metadata?: RouterMetadata): string {
    const reasons = `"finish_reason":"${finishReasonOf(answer)}","native_finish_reason":${JSON.stringify(answer.nativeReason)},"logprobs":null`;
    const role = this.#role();
    const start = chunkStart(this.#head, answer.metadata);
    const finish = `${start}${DELTA_START}{"content":""},${reasons}}]}\n\n`;
    const last = `${withMetadata(`${start},"choices":[],"usage":${JSON.stringify(usage)}}`, metadata)}\n\n`;
    return `${role}${finish}${last}${END_MARKER}`;
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
    this.#deltaStart = `${chunkStart(this.#head, this.#answer.metadata)}${DELTA_START}`;
    return this.#chunk('{"role":"assistant","content":""}');
  }
}

/** Up to the choices. Null for `system_fingerprint` makes real clients throw. */
function chunkStart(head: EventHead, metadata?: ResponseMetadata): string {
  const { systemFingerprint, serviceTier } = metadata ?? { systemFingerprint: null, serviceTier: null };
  const fingerprint = systemFingerprint === null ? '' : `,"system_fingerprint":${JSON.stringify(systemFingerprint)}`;
  const tier = serviceTier === null ? '' : `,"service_tier":${JSON.stringify(serviceTier)}`;
  return `${headStart(head)}${fingerprint}${tier}`;
}

function headStart({ id, created, model, provider }: EventHead): string {
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
    case 'audio-delta':
      return `{"audio":${JSON.stringify(audioPiece(part))}}`;
    // The API has no field for the upstream's own tools, nor for vectors; metadata is in the head of each chunk.
    case 'response-metadata':
    case 'server-tool-call':
    case 'server-tool-result':
    case 'vectors':
    case 'usage':
    case 'usage-so-far':
    case 'fields-omitted':
    case 'finish':
      return null;
  }
}

function audioPiece({ id, data, transcript, expiresAt }: Extract<ProviderPart, { type: 'audio-delta' }>): AnswerAudio {
  return { id, ...(data !== null && { data }), ...(transcript !== null && { transcript }), ...(expiresAt !== undefined && { expires_at: expiresAt }) };
}

function reasoningDelta(text: string, detail: ReasoningDetail): string {
  return `{"reasoning":${JSON.stringify(text)},"reasoning_details":[${JSON.stringify(detail)}]}`;
}
