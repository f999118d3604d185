import type { FinishReason } from '#shared/contracts/router/chat-completion.ts';
import type { ChatRequest } from '#shared/contracts/router/chat-request.ts';
import type { ProviderUsage } from '#shared/contracts/router/provider-part.ts';
import { type Conversation, readConversation, textsOf } from './conversation.ts';
import { type Directives, MAX_WORDS, readDirectives } from './directives.ts';
import { answerBySchema } from './engine/answer-by-schema.ts';
import { guidedText, isGuidance } from './engine/guided-reply.ts';
import { inferByWords } from './engine/infer-by-words.ts';
import { type PickedCall, pickTools, suggestFrom } from './pick-tools.ts';
import { RepeatedWords } from './repeated-words.ts';
import { composeReply, reportResults } from './reply.ts';
import { sampleOf } from './sample-schema.ts';
import { contentWords } from './words.ts';

/** The whole response to one request. */
export interface Script {
  directives: Directives;
  /** Words with their leading space. */
  reasoning: string[];
  /** Whether the request asks for a summary of the reasoning. */
  isSummary: boolean;
  words: RepeatedWords;
  /** Without ids, which are random: equal requests get equal scripts. */
  toolCalls: PickedCall[];
  finish: FinishReason;
  usage: ProviderUsage;
}

/** Composes the script; pure. */
export function compose(request: ChatRequest): Script {
  const texts = textsOf(request);
  const read = readConversation(request, texts);
  const { directives, text } = readDirectives(read.last);
  const conversation = { ...read, last: text };
  // `!repeat` repeats the user's text when there is any beside the directive.
  const isEcho = directives.repeat > 1 && text !== '';
  const toolCalls = isEcho ? [] : (inferByWords(request.tools ?? [], conversation.earlier, text) ?? pickTools(request, conversation));
  const reasoning = wantsReasoning(request) ? wordsOf(reasoningOn(conversation)) : [];
  const limitedAnswer: { words: RepeatedWords; finish: FinishReason } =
    toolCalls.length > 0
      ? { words: new RepeatedWords([], 0), finish: 'tool_calls' }
      : limited(request, answerTo(request, conversation, isEcho), directives.repeat);
  const isSummary = typeof request.reasoning?.summary === 'string';
  return { directives, reasoning, isSummary, toolCalls, ...limitedAnswer, usage: usageOf(texts, { reasoning, words: limitedAnswer.words, toolCalls }) };
}

function answerTo(request: ChatRequest, conversation: Conversation, isEcho: boolean): string {
  if (isEcho) return conversation.last;
  const schema = request.response_format?.type === 'json_schema' ? request.response_format.json_schema : null;
  const engineAnswer = schema === null ? null : answerBySchema(schema.name, conversation.earlier, conversation.last);
  if (engineAnswer !== null) return JSON.stringify(engineAnswer);
  const plain = { ...conversation, instructions: conversation.instructions.filter((text) => !isGuidance(text)) };
  const answer = conversation.results.length > 0 ? reportResults(plain) : composeReply(plain);
  const reply = [answer, guidedText(conversation.instructions)].filter((text) => text !== '').join(' ');
  if (request.response_format?.type === 'json_object') return JSON.stringify({ answer: reply });
  if (schema !== null) return JSON.stringify(sampleOf(schema.schema ?? {}, suggestFrom(conversation.last)));
  return reply;
}

/** The answer as words: repeated, and cut at stop sequences and the token limit. */
function limited(request: ChatRequest, answer: string, repeat: number): { words: RepeatedWords; finish: FinishReason } {
  const stops = [request.stop ?? []].flat().filter((stop) => stop !== '');
  const ends = stops.map((stop) => answer.indexOf(stop)).filter((at) => at >= 0);
  const isStopped = ends.length > 0;
  const once = wordsOf(isStopped ? answer.slice(0, Math.min(...ends)) : answer);
  const limit = Math.min(MAX_WORDS, request.max_completion_tokens ?? request.max_tokens ?? MAX_WORDS);
  // The stop sequence ends the first repetition.
  const words = new RepeatedWords(once, once.length * (isStopped ? 1 : repeat));
  return words.length > limit ? { words: words.first(limit), finish: 'length' } : { words, finish: 'stop' };
}

/** Trailing space belongs to the last word; blank text has no word. Linear. */
function wordsOf(text: string): string[] {
  const trimmed = text.trimEnd();
  const words: string[] = trimmed.match(/\s*\S+/g) ?? [];
  const last = words.pop();
  if (last !== undefined) words.push(`${last}${text.slice(trimmed.length)}`);
  return words;
}

function wantsReasoning({ reasoning, reasoning_effort: named }: ChatRequest): boolean {
  const effort = reasoning?.effort ?? named;
  if (reasoning?.enabled === false || effort === 'none') return false;
  return reasoning?.enabled === true || Boolean(effort ?? reasoning?.max_tokens);
}

function reasoningOn({ last, results }: Conversation): string {
  if (results.length > 0) return 'The tools have answered, so I put their results into words.';
  const words = [...contentWords(last)].slice(0, 5);
  return words.length === 0 ? 'The message has no question, so I say what I can do.' : `I look for what my instructions say about ${words.join(', ')}.`;
}

/** One token per word read. */
function usageOf(texts: readonly (string | null)[], { reasoning, words, toolCalls }: Pick<Script, 'reasoning' | 'words' | 'toolCalls'>): ProviderUsage {
  const called = toolCalls.reduce((sum, call) => sum + 1 + wordsOf(call.arguments).length, 0);
  return {
    promptTokens: texts.reduce((sum, text) => sum + wordsOf(text ?? '').length, 0),
    completionTokens: reasoning.length + words.length + called,
    cachedTokens: 0,
    reasoningTokens: reasoning.length,
  };
}
