import type { Annotation, FinishReason, Logprobs, ToolCall } from '../contracts/router/chat-completion.ts';
import type { PricedField } from '../contracts/router/priced-fields.ts';
import type { ProviderPart, ProviderUsage, ReasoningBlock, ReasoningPart, ResponseMetadata, UsageSoFar } from '../contracts/router/provider-part.ts';

/** Reasoning of one block, of one kind. */
export type ReasoningPiece =
  | { type: 'text'; text: string; signature: string | null; block: ReasoningBlock }
  | { type: 'summary'; text: string; block: ReasoningBlock }
  | { type: 'encrypted'; data: string; block: ReasoningBlock };

/** Sound in pieces of base64, each of whole bytes. */
export interface AnswerSound {
  id: string;
  data: string[];
  transcript: string;
  /** Epoch seconds; null: not known. */
  expiresAt: number | null;
}

/** Of reasoning without blocks. */
export const PLAIN_BLOCK: ReasoningBlock = { index: 0, id: null, format: 'unknown' };

/** An answer, accumulated from its parts. */
export interface Answer {
  /** Whether text is kept. A streamed answer keeps lengths alone. */
  readonly isRetained: boolean;
  text: string;
  /** Texts and summaries. */
  reasoning: string;
  /** Null where reasoning has no blocks. */
  reasoningPieces: ReasoningPiece[] | null;
  refusal: string;
  logprobs: Logprobs | null;
  /** Null when there are none. */
  annotations: Annotation[] | null;
  /** URLs; null when there are none. */
  images: string[] | null;
  /** Null when there is none. */
  audio: AnswerSound | null;
  /** Characters of visible content, kept or not. */
  textChars: number;
  reasoningChars: number;
  refusalChars: number;
  /** Of annotations, images, sound, signatures and encrypted reasoning, which are no text. */
  attachedChars: number;
  /** Of excluded reasoning, which is billed all the same. */
  hiddenReasoningChars: number;
  toolCalls: ToolCall[];
  /** Each as JSON, in the order of the inputs. Null when there are none. Readers get them only as a whole, so they are no content before the end. */
  vectors: string[] | null;
  /** Null until the finish part. */
  finishReason: FinishReason | null;
  nativeReason: string | null;
  /** Null when the upstream reports none. */
  usage: ProviderUsage | null;
  /** What it has counted while the answer is read; null: nothing. */
  usageSoFar: UsageSoFar | null;
  /** Fields of the endpoint's request that its upstream did not get: nothing is billed for them. Null: it got all. */
  omittedFields: readonly PricedField[] | null;
  metadata: ResponseMetadata;
}

/** Upstreams' names of an answer are short; each chunk repeats two of them. */
const MAX_METADATA_CHARS = 256;
type Token = NonNullable<Logprobs['content']>[number];

/** Of a token's names and number as JSON, and of one of its bytes with the comma. */
const TOKEN_CHARS = 50;
const BYTE_CHARS = 4;
const NO_METADATA: ResponseMetadata = { id: null, systemFingerprint: null, serviceTier: null };

export function emptyAnswer(isRetained = true): Answer {
  return {
    isRetained,
    text: '',
    reasoning: '',
    reasoningPieces: null,
    refusal: '',
    logprobs: null,
    annotations: null,
    images: null,
    audio: null,
    textChars: 0,
    reasoningChars: 0,
    refusalChars: 0,
    attachedChars: 0,
    hiddenReasoningChars: 0,
    toolCalls: [],
    vectors: null,
    finishReason: null,
    nativeReason: null,
    usage: null,
    usageSoFar: null,
    omittedFields: null,
    metadata: NO_METADATA,
  };
}

export function hasContent({ textChars, reasoningChars, refusalChars, attachedChars, toolCalls }: Answer): boolean {
  return textChars + reasoningChars + refusalChars + attachedChars > 0 || toolCalls.length > 0;
}

/** Characters of content in a part, or of vectors; 0 for a part that no surface states. */
export function charsOf(part: ProviderPart): number {
  switch (part.type) {
    case 'text-delta':
    case 'refusal-delta':
    case 'reasoning-delta':
    case 'reasoning-summary-delta':
    case 'tool-call-delta':
      return textCharsOf(part);
    case 'reasoning-signature':
      return part.signature.length;
    case 'reasoning-encrypted':
      return part.data.length;
    case 'annotation': {
      const { annotation } = part;
      return annotation.type === 'file' ? annotation.file.hash.length : annotation.url_citation.url.length;
    }
    case 'image':
      return part.url.length;
    case 'audio-delta':
      return part.id.length + (part.data?.length ?? 0) + (part.transcript?.length ?? 0);
    case 'tool-call-start':
      return part.id.length + part.name.length;
    case 'vectors':
      return part.vectors.length;
    case 'response-metadata':
    case 'server-tool-call':
    case 'server-tool-result':
    case 'usage':
    case 'usage-so-far':
    case 'fields-omitted':
    case 'finish':
      return 0;
  }
}

/** Characters of what a model writes: of a text, or of the arguments of a call. */
export function textCharsOf(part: ProviderPart): number {
  switch (part.type) {
    case 'text-delta':
    case 'refusal-delta':
    case 'reasoning-delta':
    case 'reasoning-summary-delta':
      return part.text.length;
    case 'tool-call-delta':
      return part.arguments.length;
    default:
      return 0;
  }
}

/** About as many characters as its log probabilities have as JSON. */
export function logprobsCharsOf(part: ProviderPart): number {
  if (!('logprobs' in part) || part.logprobs === undefined) return 0;
  let chars = 0;
  for (const tokens of [part.logprobs.content, part.logprobs.refusal]) {
    for (const token of tokens ?? []) {
      chars += charsOfToken(token);
      for (const likely of token.top_logprobs) chars += charsOfToken(likely);
    }
  }
  return chars;
}

function charsOfToken({ token, bytes }: Pick<Token, 'token' | 'bytes'>): number {
  return TOKEN_CHARS + token.length + BYTE_CHARS * (bytes?.length ?? 0);
}

/** Adds a part in place. */
export function addPart(answer: Answer, part: ProviderPart): void {
  switch (part.type) {
    case 'text-delta':
      answer.textChars += part.text.length;
      if (answer.isRetained) answer.text += part.text;
      if (answer.isRetained && part.logprobs !== undefined) answer.logprobs = joined(answer.logprobs, part.logprobs);
      return;
    case 'reasoning-delta':
    case 'reasoning-summary-delta':
      answer.reasoningChars += part.text.length;
      if (!answer.isRetained) return;
      if (part.block !== undefined || answer.reasoningPieces !== null) addReasoning(answer, part, part.block ?? PLAIN_BLOCK);
      answer.reasoning += part.text;
      return;
    case 'reasoning-signature':
    case 'reasoning-encrypted':
      answer.attachedChars += charsOf(part);
      if (answer.isRetained) addReasoning(answer, part, part.block);
      return;
    case 'annotation':
      answer.attachedChars += charsOf(part);
      if (answer.isRetained) answer.annotations = append(answer.annotations, [part.annotation]);
      return;
    case 'image':
      answer.attachedChars += charsOf(part);
      if (answer.isRetained) answer.images = append(answer.images, [part.url]);
      return;
    case 'audio-delta':
      answer.attachedChars += charsOf(part);
      if (answer.isRetained) addAudio(answer, part);
      return;
    case 'response-metadata':
      answer.metadata = {
        id: bounded(part.id) ?? answer.metadata.id,
        systemFingerprint: bounded(part.systemFingerprint) ?? answer.metadata.systemFingerprint,
        serviceTier: bounded(part.serviceTier) ?? answer.metadata.serviceTier,
      };
      return;
    case 'server-tool-call':
    case 'server-tool-result':
      return;
    case 'refusal-delta':
      answer.refusalChars += part.text.length;
      if (answer.isRetained) answer.refusal += part.text;
      if (answer.isRetained && part.logprobs !== undefined) answer.logprobs = joined(answer.logprobs, part.logprobs);
      return;
    case 'tool-call-start':
      answer.toolCalls[part.index] = { id: part.id, type: 'function', function: { name: part.name, arguments: '' } };
      return;
    case 'tool-call-delta': {
      const call = answer.toolCalls[part.index];
      if (call !== undefined) call.function.arguments += part.arguments;
      return;
    }
    case 'vectors':
      answer.vectors = append(answer.vectors, part.vectors);
      return;
    case 'usage':
      answer.usage = part.usage;
      return;
    case 'fields-omitted':
      answer.omittedFields = part.names;
      return;
    case 'usage-so-far':
      answer.usageSoFar = part.read;
      return;
    case 'finish':
      answer.finishReason = part.reason;
      answer.nativeReason = part.nativeReason;
      return;
  }
}

/** Deltas and signature of a block become one piece; an encrypted part is one of its own. Reasoning that came without blocks is the first piece. */
function addReasoning(answer: Answer, part: ReasoningPart, block: ReasoningBlock): void {
  answer.reasoningPieces ??= answer.reasoning === '' ? [] : [{ type: 'text', text: answer.reasoning, signature: null, block: PLAIN_BLOCK }];
  const last = answer.reasoningPieces.findLast((piece) => piece.block.index === block.index);
  switch (part.type) {
    case 'reasoning-delta':
      if (last?.type === 'text') last.text += part.text;
      else answer.reasoningPieces.push({ type: 'text', text: part.text, signature: null, block });
      return;
    case 'reasoning-summary-delta':
      if (last?.type === 'summary') last.text += part.text;
      else answer.reasoningPieces.push({ type: 'summary', text: part.text, block });
      return;
    case 'reasoning-signature':
      if (last?.type === 'text') last.signature = `${last.signature ?? ''}${part.signature}`;
      else answer.reasoningPieces.push({ type: 'text', text: '', signature: part.signature, block });
      return;
    case 'reasoning-encrypted':
      answer.reasoningPieces.push({ type: 'encrypted', data: part.data, block });
  }
}

function addAudio(answer: Answer, { id, data, transcript, expiresAt }: Extract<ProviderPart, { type: 'audio-delta' }>): void {
  answer.audio ??= { id, data: [], transcript: '', expiresAt: null };
  if (data !== null) answer.audio.data.push(data);
  answer.audio.transcript += transcript ?? '';
  answer.audio.expiresAt = expiresAt ?? answer.audio.expiresAt;
}

function bounded(text: string | null): string | null {
  return text === null ? null : text.slice(0, MAX_METADATA_CHARS);
}

/** For clients: `tool_calls` when there are any, also where the upstream reports `stop`. */
export function finishReasonOf({ finishReason, toolCalls }: Answer): FinishReason {
  if (finishReason === null) return 'error';
  return finishReason === 'stop' && toolCalls.length > 0 ? 'tool_calls' : finishReason;
}

function joined(before: Logprobs | null, next: Logprobs): Logprobs {
  if (before === null) return { content: next.content && [...next.content], refusal: next.refusal && [...next.refusal] };
  if (next.content) before.content = append(before.content, next.content);
  if (next.refusal) before.refusal = append(before.refusal, next.refusal);
  return before;
}

function append<Item>(list: Item[] | null, items: readonly Item[]): Item[] {
  if (list === null) return [...items];
  list.push(...items);
  return list;
}
