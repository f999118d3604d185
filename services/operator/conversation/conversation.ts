import type { EffectRow } from '#actors/effects/effect-row.ts';
import { embed } from '#actors/effects/embed.ts';
import { embedMessages } from '#actors/effects/embed-messages.ts';
import { moderation } from '#actors/effects/moderation.ts';
import { effects } from '#actors/effects/registry.ts';
import type { RenderDeps } from '#actors/effects/render-deps.ts';
import { rewriteQueryCall } from '#actors/effects/rewrite-query.ts';
import { search } from '#actors/effects/search.ts';
import type { AgentState } from '#actors/engine/agent-state.ts';
import { engineDocumentsOf } from '#actors/engine/engine-documents.ts';
import type { Evaluations } from '#actors/engine/evaluation/evaluation-set.ts';
import { greetingOf } from '#actors/engine/greeting-of.ts';
import type { Verdict } from '#actors/engine/moderation/moderation-mark.ts';
import type { TurnRow } from '#actors/engine/turn-row.ts';
import { Unrenderable } from '#actors/runtime/publish/unrenderable.ts';
import { actorFields } from '#bus/messages/actor-fields.ts';
import type { FoundDocument } from '#bus/messages/found-document.ts';
import type { RouterCall } from '#bus/messages/router.ts';
import { COMMAND_VERSION, type CommandOf, type ModerationMode, type SessionCommand } from '#bus/messages/session.ts';
import type { ToolWork } from '#bus/messages/tool.ts';
import type { ConversationEvent } from '#shared/contracts/agent/conversation-event.ts';
import type { Failure } from '#shared/errors/switchyard-error.ts';
import { type RenderingFacts, renderingOf } from './rendering.ts';
import { headerOf, SessionInMemory, type SessionPast } from './session-in-memory.ts';

/** Steps of a turn: passes of matching, tools and repeats of malformed answers. More is a turn that does not end. */
const MAX_ROUNDS = 1_000;
/** Kinds of effects of a search, and of likeness, which are not made here: what was recorded or stated of one counts, and else it is lost. */
const RETRIEVAL: ReadonlySet<string> = new Set([rewriteQueryCall.name, embed.name, embedMessages.name, search.name]);

/** A vector for a search whose result is stated: of no use but to go on. */
const ANY_VECTOR = 'AACAPw==';

export type ToolOutcome = CommandOf<'tool.completed'>['outcome'];
export type ToolCallItem = Extract<ToolWork, { type: 'call' }>;
/** What a result may be recorded for. */
export type RecordedItem = RouterCall | ToolCallItem | Extract<ToolWork, { type: 'search' }>;

/** What a model call brings. */
export type ModelAnswer =
  | ({ type: 'completed' } & Pick<CommandOf<'call.completed'>, 'text' | 'toolCalls' | 'model' | 'provider' | 'finishReason' | 'usage'>)
  | { type: 'failed'; failure: Failure };

/** What was recorded for an effect: the row of its answer, or the answer itself. */
export type RecordedAnswer = { type: 'row'; row: TurnRow } | { type: 'answer'; answer: ModelAnswer };

/** Makes the effects of a conversation. */
interface Answers {
  model(call: RouterCall): Promise<ModelAnswer>;
  tool(call: ToolCallItem): ToolOutcome;
  /** What a search finds. Absent: searches are lost. */
  search?(query: string): FoundDocument[];
  /** Looked at before the others; null: there is none. Absent: nothing is recorded. */
  recorded?(effect: EffectRow, item: RecordedItem): Promise<RecordedAnswer | null>;
}

/** How moderation was asked to check a message, and what it found. */
export interface MessageCheck {
  mode: ModerationMode;
  verdict: Verdict;
}

/** `metadata`: of the event. */
export type Post = { metadata: Record<string, unknown>; triggersTurn: boolean } & (
  | { type: 'message'; source: CommandOf<'message.post'>['source']; text: string; check?: MessageCheck }
  | { type: 'tool-result'; toolId: string; arguments: Record<string, unknown>; result: unknown }
);

/** What some messages led to. */
export interface Exchange {
  /** In order, the posted ones included. */
  events: ConversationEvent[];
  /** Of the turn; empty where it was one model call, or where none began. */
  rows: TurnRow[];
}

interface ConversationDeps extends RenderingFacts {
  /** Null: the session is new. */
  past: SessionPast | null;
  answers: Answers;
}

/** A conversation with an agent, in memory: actors, prompts and decisions are those of the product, effects are made by `answers`. */
export class Conversation {
  readonly session: SessionInMemory;
  readonly #deps: ConversationDeps;
  /** Of messages that moderation checks, by offset. */
  readonly #verdicts = new Map<unknown, Verdict>();
  #evaluations: Evaluations;

  /** @param startedAtMs epoch ms */
  constructor(deps: ConversationDeps, startedAtMs: number) {
    const { bundle, evaluations, tools, past } = deps;
    this.#deps = deps;
    this.#evaluations = evaluations;
    const documents = engineDocumentsOf(bundle.body, evaluations);
    this.session = new SessionInMemory({ hash: bundle.hash, greeting: greetingOf(bundle.body), documents, tools }, past, startedAtMs);
  }

  /** What prompts are rendered with. */
  get rendering(): RenderDeps {
    return renderingOf(this.session, { ...this.#deps, evaluations: this.#evaluations });
  }

  /** Of the next turns, which the agent answers: a tool or a person may have handed the session over before. @param agentState null: as it is */
  goOnWith(evaluations: Evaluations, agentState: AgentState | null, atMs: number): void {
    const unchanged = { setMetadata: {}, unsetMetadata: [], upsertLabels: [], removeLabels: [] };
    this.session.apply({ ...headerOf(`mode-${this.session.newId()}`, atMs), type: 'session.patch', mode: 'auto', ...unchanged }, atMs);
    this.#evaluations = evaluations;
    this.session.documents = engineDocumentsOf(this.#deps.bundle.body, evaluations);
    if (agentState !== null) this.session.agentState = agentState;
  }

  /** Posts messages at the same time, and makes all that follows from them. @throws what a machine or a prompt throws */
  async exchange(posts: readonly Post[], atMs: number): Promise<Exchange> {
    const { session } = this;
    const [from, turns] = [session.log.length, session.turnIds.length];
    for (const post of posts) this.#post(post, atMs);
    for (let round = 0; session.open.size > 0; round += 1) {
      if (round === MAX_ROUNDS) throw new Error(`a turn has not ended after ${MAX_ROUNDS} rounds of calls`);
      await this.#makeOpen(atMs);
    }
    const rows = session.turnIds.slice(turns).flatMap((turnId) => session.rowsOf(turnId));
    return { events: session.log.slice(from), rows };
  }

  #post(post: Post, atMs: number): void {
    const { log } = this.session;
    const at = log.length;
    this.session.apply(this.#commandOf(post, atMs), atMs);
    if (post.type === 'message' && post.check !== undefined) this.#verdicts.set(log[at]?.offset, post.check.verdict);
  }

  /** Side by side, as in the product; results are applied in the order in which the effects were opened. Recorded ones first: they may make others needless. */
  async #makeOpen(atMs: number): Promise<void> {
    const rendered = await Promise.all([...this.session.open.values()].map(async (effect) => ({ effect, item: await this.#itemOf(effect) })));
    const recorded = await Promise.all(rendered.map(async ({ effect, item }) => ({ effect, command: await this.#recordedOf(effect, item, atMs) })));
    const known = recorded.filter(({ command }) => command !== null);
    if (known.length > 0) return this.#settle(known, atMs);
    this.#settle(await Promise.all(rendered.map(async ({ effect, item }) => ({ effect, command: await this.#resultOf(effect, item, atMs) }))), atMs);
  }

  #settle(results: readonly { effect: EffectRow; command: SessionCommand | null }[], atMs: number): void {
    for (const { effect, command } of results) {
      if (!this.session.open.has(effect.id)) continue;
      if (command !== null) this.session.apply(command, atMs);
      // One without a result, such as a delivery, is not made.
      this.session.open.delete(effect.id);
    }
  }

  /** Null: it is none that a turn waits for. */
  async #itemOf(effect: EffectRow): Promise<RecordedItem | null> {
    const { work } = effects.kind(effect.kind);
    if ((work !== 'router.turn' && work !== 'tool') || effect.kind === moderation.name) return null;
    const { recorded, search: stated } = this.#deps.answers;
    if (RETRIEVAL.has(effect.kind)) return recorded === undefined && stated === undefined ? null : this.#retrievalOf(effect);
    const item = JSON.parse(await effects.render(effect, false, this.rendering)) as RouterCall | ToolWork;
    return 'request' in item || item.type === 'call' ? item : null;
  }

  /** Null: there is nothing to search for. */
  async #retrievalOf(effect: EffectRow): Promise<RecordedItem | null> {
    try {
      return JSON.parse(await effects.render(effect, false, this.rendering)) as RecordedItem;
    } catch (error) {
      if (error instanceof Unrenderable || error instanceof TypeError) return null;
      throw error;
    }
  }

  async #recordedOf(effect: EffectRow, item: RecordedItem | null, atMs: number): Promise<SessionCommand | null> {
    if (effect.kind === moderation.name) return checked(effect, this.#verdicts.get(effect.inputs['upToOffset']) ?? { type: 'unavailable' }, atMs);
    const recorded = item === null ? null : ((await this.#deps.answers.recorded?.(effect, item)) ?? null);
    if (item === null || recorded === null) return null;
    if (recorded.type === 'answer') return answered(effect, recorded.answer, atMs);
    this.session.recorded.set(effect.id, recorded.row);
    // The row counts in place of what the command says.
    if (!('request' in item)) return toolAnswered(effect, { type: 'result', data: null, metadata: {}, isError: false }, atMs);
    const model = 'model' in recorded.row ? (recorded.row.model ?? '') : '';
    return answered(effect, completedWith(model), atMs);
  }

  async #resultOf(effect: EffectRow, item: RecordedItem | null, atMs: number): Promise<SessionCommand | null> {
    const { answers } = this.#deps;
    // Where nothing is searched for, a query and its vector would be of no use.
    if (item === null || (RETRIEVAL.has(effect.kind) && answers.search === undefined)) return overdue(effect, atMs);
    // Shared words decide.
    if (effect.kind === embedMessages.name) return overdue(effect, atMs);
    if (effect.kind === embed.name) return { ...answered(effect, completedWith(''), atMs), vectors: [ANY_VECTOR] };
    if ('type' in item && item.type === 'search') {
      const documents = item.query === '' ? [] : (answers.search?.(item.query) ?? []);
      return toolAnswered(effect, { type: 'result', data: { documents }, metadata: {}, isError: false }, atMs);
    }
    if ('toolId' in item) return toolAnswered(effect, answers.tool(item), atMs);
    return answered(effect, await answers.model(item), atMs);
  }

  #commandOf(post: Post, atMs: number): SessionCommand {
    const { triggersTurn, metadata } = post;
    const about = { metadata, triggersTurn, traceId: this.session.newTraceId(), bundleHash: this.#deps.bundle.hash };
    const header = headerOf(`post-${this.session.newId()}`, atMs);
    if (post.type === 'message') {
      const message = { ...header, type: 'message.post' as const, source: post.source, text: post.text, ...about };
      return post.check === undefined ? message : { ...message, v: COMMAND_VERSION, moderation: post.check.mode };
    }
    return { ...header, type: 'tool-event.post', toolId: post.toolId, arguments: post.arguments, result: post.result, resultMetadata: {}, ...about };
  }
}

/** The end of a message's check. */
function checked(effect: EffectRow, verdict: Verdict, atMs: number): SessionCommand {
  if (verdict.type === 'passed') return answered(effect, completedWith(''), atMs);
  const [code, details] =
    verdict.type === 'flagged' ? (['router.content_policy', { reasons: verdict.tags }] as const) : (['router.plugin_unavailable', {}] as const);
  return answered(effect, { type: 'failed', failure: { code, message: '', details } }, atMs);
}

/** A result without a text of its own. */
function completedWith(model: string): Extract<ModelAnswer, { type: 'completed' }> {
  return { type: 'completed', text: '', toolCalls: [], model, provider: '', finishReason: 'stop', usage: null };
}

function answered(effect: EffectRow, answer: Extract<ModelAnswer, { type: 'completed' }>, atMs: number): CommandOf<'call.completed'>;
function answered(effect: EffectRow, answer: ModelAnswer, atMs: number): CommandOf<'call.completed' | 'call.failed'>;
function answered(effect: EffectRow, answer: ModelAnswer, atMs: number): CommandOf<'call.completed' | 'call.failed'> {
  const header = resultHeader(effect, atMs);
  if (answer.type === 'failed') return { ...header, type: 'call.failed', failure: answer.failure };
  const { text, toolCalls, model, provider, finishReason, usage } = answer;
  return { ...header, type: 'call.completed', text, toolCalls, model, provider, finishReason, usage };
}

function toolAnswered(effect: EffectRow, outcome: ToolOutcome, atMs: number): SessionCommand {
  return { ...resultHeader(effect, atMs), type: 'tool.completed', outcome };
}

/** Work that is not done here ends as if its result were lost. Null for what no turn waits for. */
function overdue(effect: EffectRow, atMs: number): SessionCommand | null {
  const { actor, overdue: how } = effects.kind(effect.kind);
  return actor !== 'turn' || how === 'report' ? null : { ...resultHeader(effect, atMs), type: 'effect.overdue', kind: effect.kind };
}

function resultHeader({ id, actorId }: EffectRow, atMs: number) {
  return { ...headerOf(id, atMs), ...actorFields(actorId), callId: id };
}
