import type { FoundDocument } from '../../bus/messages/found-document.ts';
import { SearchFailure } from '../../services/effect-worker/search/search-failure.ts';
import { ToolFailure } from '../../services/effect-worker/tools/tool-failure.ts';
import type { CallResult, Execution } from '../../services/router-worker/call/execution.ts';
import type { CallSignal } from '../../services/router-worker/call-signal.ts';
import { failureOf, SwitchyardError } from '../../shared/errors/switchyard-error.ts';
import type { GuardedPoster } from '../../shared/http/guarded-post.ts';
import { answerText, toolCallsFor } from './model-answers.ts';
import { FLAGGED_TAG, type Found } from './moderation-rules.ts';
import type { Process, Scheduler } from './scheduler.ts';

/** The tools of the one server: a repeatable one and one that may happen once. */
export const TOOLS = [
  { name: 'find', title: null, description: null, inputSchema: { type: 'object' }, repeatable: true },
  { name: 'refund', title: null, description: null, inputSchema: { type: 'object' }, repeatable: false },
];

/** As models call it. */
const REFUND = 'shop__refund';

/** As base64 in JSON. */
const VECTOR = '"AACAPwAAAAA="';

type Posted = Parameters<GuardedPoster['post']>[0];

/** Notified of each event that a receiver gets, and whether it is accepted. */
export interface PostedEventWatch {
  /** Offsets, by session. */
  readonly accepted: ReadonlyMap<string, ReadonlySet<number>>;
  posted(sessionId: string, body: string, about: { isAccepted: boolean; begunAtMs: number }): void;
}

/** Notified of each request of a worker to a model, tool or receiver. */
export interface EnvironmentWatch {
  begun(process: Process, effectId: string): void;
}

/** Models, tools and receivers of callbacks, with counts of their requests. */
export class Environment {
  readonly #scheduler: Scheduler;
  readonly #watch: EnvironmentWatch;
  /** Upstream requests, by call. */
  readonly modelCalls = new Map<string, number>();
  /** What moderation has said, by call. */
  readonly moderated = new Map<string, Set<Found>>();
  /** How often a tool call took effect, by `run number`. */
  readonly toolEffects = new Map<string, number>();
  readonly posts: { deliveryId: string; body: string }[] = [];
  /** Of event webhooks. */
  readonly events: PostedEventWatch;
  /** From now on every request succeeds, and at once. */
  isFaultFree = false;

  constructor(scheduler: Scheduler, watch: EnvironmentWatch, events: PostedEventWatch) {
    this.#scheduler = scheduler;
    this.#watch = watch;
    this.events = events;
  }

  async callModel(process: Process, { call, signal }: Execution): Promise<CallResult> {
    const { callId, reply } = call;
    this.#watch.begun(process, callId);
    this.modelCalls.set(callId, (this.modelCalls.get(callId) ?? 0) + 1);
    const lost = () => new SwitchyardError('router.provider_unavailable', 'the upstream connection was lost');
    const isTurn = (reply?.actorId ?? '').startsWith('trn_');
    try {
      return await orAborted(
        signal,
        this.#scheduler.park<CallResult>(process, 'model', lost, () => this.#answerOf(call, isTurn)),
      );
    } catch (error) {
      return { type: 'failed', failure: failureOf(error) };
    }
  }

  /** The router's moderation of a message's texts. */
  async checkTexts(process: Process, { call: { callId }, signal }: Execution): Promise<CallResult> {
    this.#watch.begun(process, callId);
    const lost = () => new SwitchyardError('router.plugin_unavailable', 'the connection to the engine was lost');
    try {
      return await orAborted(
        signal,
        this.#scheduler.park<CallResult>(process, 'moderation', lost, () => this.#verdictOn(callId)),
      );
    } catch (error) {
      return { type: 'failed', failure: failureOf(error) };
    }
  }

  #verdictOn(callId: string): CallResult {
    const how = this.isFaultFree ? 0 : this.#scheduler.chance.below(10);
    const found: Found = how < 6 ? 'passed' : how < 8 ? 'flagged' : 'failed';
    this.moderated.set(callId, new Set([...(this.moderated.get(callId) ?? []), found]));
    const usage = { promptTokens: 0, completionTokens: 0 };
    if (found === 'passed') return { type: 'completed', text: '', toolCalls: [], model: '', provider: 'guard', finishReason: 'stop', usage };
    const flagged = () => new SwitchyardError('router.content_policy', 'flagged', { details: { reasons: [FLAGGED_TAG] } });
    return { type: 'failed', failure: failureOf(found === 'flagged' ? flagged() : new SwitchyardError('router.plugin_unavailable', 'no')) };
  }

  #answerOf({ callId, request, embedding }: Execution['call'], isTurn: boolean): CallResult {
    const { chance } = this.#scheduler;
    const how = this.isFaultFree ? 0 : chance.below(100);
    const usage = { promptTokens: 1, completionTokens: 1 };
    const empty = { type: 'completed' as const, text: '', toolCalls: [], model: 'm', provider: 'p', finishReason: 'stop', usage };
    const failed = { type: 'failed' as const, failure: failureOf(new SwitchyardError('router.provider_unavailable', 'no')) };
    // A turn asks many questions: each fails less often than a turn's one call.
    const isQuestion = request.response_format?.type === 'json_schema' || (isTurn && (request.tools ?? []).length > 0);
    if (how >= (isQuestion ? 97 : 92)) return failed;
    if (embedding !== undefined) return how >= 90 ? failed : { ...empty, vectors: [VECTOR] };
    if (request.response_format?.type === 'json_schema') return { ...empty, text: how >= 90 ? '{}' : answerText(request, chance) };
    if (isTurn && (request.tools ?? []).length > 0) return { ...empty, toolCalls: toolCallsFor(request, callId, chance), finishReason: 'tool_calls' };
    if (isTurn) return how >= 85 ? empty : { ...empty, text: `a reply to ${callId}` };
    const call = (id: string, name: string, args: object) => ({ id, name, arguments: JSON.stringify(args) });
    const calling = (...toolCalls: ReturnType<typeof call>[]) => ({ ...empty, toolCalls, finishReason: 'tool_calls' });
    if (isFirstWithTools(request) && (this.isFaultFree || !chance.oneIn(4))) return calling(...[1, 2].map((n) => call(`c${n}`, REFUND, { callId, n })));
    if (how < 35) return calling(call('c', 'emit_output', { verdict: 'refund' }));
    if (how < 42) return calling(call('c', 'emit_output', { verdict: 7 }));
    if (how < 47) return { ...empty, text: 'only text' };
    if (how < 52) return empty;
    if (how < 75) return calling(call('c1', REFUND, { callId, n: 1 }));
    return calling(call('c1', 'shop__find', { callId, n: 1 }), call('c2', REFUND, { callId, n: 2 }));
  }

  /** Searches a table of vectors. */
  async search(process: Process, vector: string, signal: AbortSignal): Promise<FoundDocument[]> {
    const { chance } = this.#scheduler;
    const lost = () => new SearchFailure('unreachable', 'no answer came');
    const found = this.#scheduler.park<FoundDocument[]>(process, 'search', lost, () => {
      if (!this.isFaultFree && chance.oneIn(10)) throw new SearchFailure('unreachable', 'the server is not there');
      return [{ content: `near ${vector}`, title: null, url: null }];
    });
    return orAborted(signal, found);
  }

  /** Executes a tool call. Its effect stands even if its result is lost. */
  async callTool(process: Process, tool: string, args: Record<string, unknown>, signal: AbortSignal): Promise<{ structuredContent: unknown }> {
    const key = `${tool} ${String(args['callId'])} ${String(args['n'])}`;
    const { chance } = this.#scheduler;
    const lost = () => new ToolFailure('lost', 'no answer came', { sent: true });
    const answer = this.#scheduler.park<{ structuredContent: unknown }>(process, `tool ${tool}`, lost, () => {
      if (!this.isFaultFree && chance.oneIn(15)) throw new ToolFailure('unreachable', 'the server is not there');
      this.toolEffects.set(key, (this.toolEffects.get(key) ?? 0) + 1);
      return { structuredContent: { done: key } };
    });
    return orAborted(signal, answer).catch((error: unknown) => {
      throw error instanceof ToolFailure ? error : new ToolFailure('stopped', 'the call was cancelled', { sent: true });
    });
  }

  posterOf(process: Process): Pick<GuardedPoster, 'post'> {
    const lost = () => new SwitchyardError('outbound.failed', 'no answer', { details: { reason: 'no_answer' } });
    return {
      post: ({ headers: given, body, signal }: Posted) => {
        const headers = given as Record<string, string>;
        const text = Buffer.from(body as Uint8Array).toString('utf8');
        const begunAtMs = this.#scheduler.nowMs;
        const answer = this.#scheduler.park<{ status: number; retryAfterMs: null }>(process, 'post', lost, () => {
          const isAccepted = this.isFaultFree || !this.#scheduler.chance.oneIn(4);
          const sessionId = headers['x-session-id'];
          if (sessionId === undefined) this.posts.push({ deliveryId: `${headers['x-run-id']}-callback`, body: text });
          else this.events.posted(sessionId, text, { isAccepted, begunAtMs });
          return { status: isAccepted ? 204 : 503, retryAfterMs: null };
        });
        return signal === undefined ? answer : orAborted(signal, answer);
      },
    };
  }
}

/** A run's model has tools and has called none. Most get here when nothing fails any more; they call tools, too, so that about half of all runs do. */
function isFirstWithTools({ messages, tools = [] }: Execution['call']['request']): boolean {
  return tools.some(({ function: { name } }) => name === REFUND) && messages.every(({ role }) => role !== 'tool');
}

export function orAborted<Result>(signal: CallSignal, work: Promise<Result>): Promise<Result> {
  return new Promise((resolve, reject) => {
    if (signal.aborted) reject(signal.reason as Error);
    signal.addEventListener('abort', () => reject(signal.reason as Error));
    work.then(resolve, reject);
  });
}
