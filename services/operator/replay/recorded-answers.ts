import type { EffectRow } from '#actors/effects/effect-row.ts';
import { effects } from '#actors/effects/registry.ts';
import type { RenderDeps } from '#actors/effects/render-deps.ts';
import type { AgentState } from '#actors/engine/agent-state.ts';
import type { Evaluations } from '#actors/engine/evaluation/evaluation-set.ts';
import { currentRows, readTurnRows, type TurnRow } from '#actors/engine/turn-row.ts';
import { canonicalJson } from '#shared/config/canonical-json.ts';
import type { Bundle } from '#shared/config/load-bundle.ts';
import type { ConversationEvent } from '#shared/contracts/agent/conversation-event.ts';
import type { Conversation, RecordedAnswer, RecordedItem, ToolCallItem } from '../conversation/conversation.ts';
import { messagesIn } from '../conversation/rendering.ts';
import type { RecordedTurn } from './recorded-session.ts';

interface RecordedDeps {
  /** Of the whole session. */
  turns: readonly RecordedTurn[];
  log: readonly ConversationEvent[];
  /** Null: no longer stored. */
  bundleOf(hash: string): Promise<Bundle | null>;
  evaluationsOf(bundle: Bundle, set: string | null): Promise<Evaluations>;
}

/** How often a replay has used what was recorded. */
export interface Used {
  modelCalls: number;
  toolCalls: number;
}

/**
 * The answers of a recorded session, for the calls of its replay. A model's answer is used where the recorded call had the same prompt: both are rendered by
 * this release, with the documents, the conversation and the rows of each, and compared whole; and so are searches. A tool's result is used for the same tool and
 * arguments.
 */
export class RecordedAnswers {
  readonly used: Used = { modelCalls: 0, toolCalls: 0 };
  readonly #deps: RecordedDeps;
  #turn: RecordedTurn | null = null;
  #next: AgentState | null = null;
  /** Calls for the reply so far, of the turn. */
  readonly #composing = new Set<string>();
  #usedRows = new Set<TurnRow>();

  constructor(deps: RecordedDeps) {
    this.#deps = deps;
  }

  /** @param next with which the turn after it began; null: it is not known */
  begin(turn: RecordedTurn, next: AgentState | null): void {
    this.#turn = turn;
    this.#next = next;
    this.#composing.clear();
    this.#usedRows = new Set();
  }

  /** Null: nothing that fits was recorded. */
  async find(conversation: Conversation, effect: EffectRow, item: RecordedItem): Promise<RecordedAnswer | null> {
    const found = 'toolId' in item ? this.#toolResult(item) : await this.#answerTo(conversation, effect, item);
    if (found !== null && 'toolId' in item) this.used.toolCalls += 1;
    if (found !== null && 'request' in item) this.used.modelCalls += 1;
    return found;
  }

  /** Of this turn, else of any: a result that was recorded twice may have changed meanwhile. */
  #toolResult({ toolId, arguments: given }: ToolCallItem): RecordedAnswer | null {
    const wanted = canonicalJson([toolId, given]);
    const own = this.#turn?.rows ?? [];
    const rows = [...own, ...this.#deps.turns.flatMap((turn) => turn.rows)];
    const fitting = rows.filter((row) => row.kind === 'tool' && canonicalJson([row.call.toolId, row.call.arguments]) === wanted);
    const row = fitting.find((one) => !this.#usedRows.has(one)) ?? fitting[0];
    if (row === undefined) return null;
    this.#usedRows.add(row);
    return { type: 'row', row };
  }

  async #answerTo(conversation: Conversation, effect: EffectRow, item: RecordedItem): Promise<RecordedAnswer | null> {
    const turn = this.#turn;
    const candidate = turn === null ? null : this.#candidate(turn, effect);
    if (turn === null || candidate === null) return null;
    return (await this.#isSame(turn, conversation, effect, item)) ? candidate : null;
  }

  #candidate(turn: RecordedTurn, effect: EffectRow): RecordedAnswer | null {
    switch (effect.kind) {
      case 'turn-step':
        return stepAnswer(turn, effect);
      case 'turn-applied':
        return appliedAnswer(effect, this.#next);
      case 'router-call':
        this.#composing.add(effect.id);
        return replyAnswer(turn, [...this.#composing].indexOf(effect.id));
      case 'rewrite-query':
        return rowAnswer(turn, 'query');
      case 'embed':
        return rowAnswer(turn, 'embedding');
      case 'embed-messages':
        // It names a routine and terms of the documents that it was compared with.
        return effect.inputs['bundleHash'] === turn.bundleHash ? rowAnswer(turn, 'likeness') : null;
      case 'search':
        return rowAnswer(turn, 'search');
      default:
        return null;
    }
  }

  async #isSame(turn: RecordedTurn, conversation: Conversation, effect: EffectRow, item: RecordedItem): Promise<boolean> {
    const bundle = turn.bundleHash === null ? null : await this.#deps.bundleOf(turn.bundleHash);
    if (bundle === null || !turn.calls.some((call) => isSameCall(call, effect))) return false;
    try {
      const rows = countersOf(turn, conversation.session.rowsOf(effect.actorId));
      const recorded = await effects.render(asRecorded(effect, turn, rows.length), false, this.#renderingOf(turn, bundle, rows, conversation));
      return canonicalJson(askedIn(JSON.parse(recorded) as RecordedItem)) === canonicalJson(askedIn(item));
    } catch (error) {
      // The recorded documents lack what the call is about, so its prompt was another.
      if (error instanceof TypeError) return false;
      throw error;
    }
  }

  #renderingOf(turn: RecordedTurn, bundle: Bundle, rows: readonly unknown[], conversation: Conversation): RenderDeps {
    const { rendering, session } = conversation;
    const end = turn.events.at(-1)?.offset ?? -1;
    const messages = messagesIn(this.#deps.log.filter(({ offset }) => offset <= end));
    return {
      ...rendering,
      turns: { staged: async (turnIds) => new Map(turnIds.map((turnId) => [turnId, rows.map((body, seq) => ({ seq, body }))])) },
      // As many as the replay has at this place.
      histories: { upTo: async (offset) => messages.slice(0, messagesIn(session.log.filter((event) => event.offset <= offset)).length) },
      bundleOf: async () => bundle,
      evaluationsOf: (_, set) => this.#deps.evaluationsOf(bundle, set),
    };
  }
}

/** What a call or a search asks for. Times of messages are those of the replay. */
function askedIn(item: RecordedItem): unknown {
  if ('request' in item) return item.request;
  if (item.type !== 'search') return null;
  const { query, messages, vector = null } = item;
  return { query, vector, messages: messages.map(({ role, text }) => ({ role, text })) };
}

/** The newest row of a kind that a turn has once. */
function rowAnswer({ rows }: RecordedTurn, kind: 'query' | 'embedding' | 'search' | 'likeness'): RecordedAnswer | null {
  const row = rows.length === 0 ? undefined : currentRows(rows).rows.findLast((one) => one.kind === kind);
  return row === undefined ? null : { type: 'row', row };
}

/** The row of the same question. Its reference is compared as it was stored. */
function stepAnswer({ bodies }: RecordedTurn, { inputs }: EffectRow): RecordedAnswer | null {
  const body = bodies.findLast(
    (one) => isRecord(one) && one['kind'] === inputs['call'] && canonicalJson(one['reference']) === canonicalJson(inputs['reference']),
  );
  const [row] = readTurnRows([body]);
  return row === undefined ? null : { type: 'row', row };
}

/** What the check after the reply has found stands in what the agent remembers in the next turn. */
function appliedAnswer({ inputs }: EffectRow, next: AgentState | null): RecordedAnswer | null {
  const policyIds = inputs['policyIds'];
  if (next === null || !Array.isArray(policyIds)) return null;
  const verdicts = policyIds.map((id, index) => ({ id: index + 1, rationale: 'recorded', applies: next.appliedPolicyIds.includes(String(id)) }));
  return answerOf(JSON.stringify({ verdicts }), '', '');
}

/** @param place among the turn's replies, from 0: one that was checked first, and another one in its place */
function replyAnswer({ rows, events }: RecordedTurn, place: number): RecordedAnswer | null {
  const sent = events.findLast((event) => event.kind === 'assistant_message' && event.source === 'ai_agent');
  const drafts = rows.length === 0 ? [] : currentRows(rows).rows.flatMap((row) => (row.kind === 'reply' ? [row.text] : []));
  const text = sent?.kind === 'assistant_message' ? sent.text : null;
  const texts = text === null || text === drafts.at(-1) ? drafts : [...drafts, text];
  const found = texts[Math.min(place, texts.length - 1)];
  const { model = '', provider = '' } = sent?.metadata ?? {};
  return found === undefined ? null : answerOf(found, String(model), String(provider));
}

function answerOf(text: string, model: string, provider: string): RecordedAnswer {
  return { type: 'answer', answer: { type: 'completed', text, toolCalls: [], model, provider, finishReason: 'stop', usage: null } };
}

/** Whether a recorded call asked the same, by the same template. */
function isSameCall(call: RecordedTurn['calls'][number], { kind, inputs }: EffectRow): boolean {
  // The check after a turn has an id of its own, and its rows are not read.
  if (kind === 'turn-applied') return true;
  return (
    call.kind === kind &&
    call.inputs['template'] === inputs['template'] &&
    canonicalJson(call.inputs['reference'] ?? null) === canonicalJson(inputs['reference'] ?? null)
  );
}

/** The recorded rows of those that the replay has, in its order: results come in any order. */
function countersOf({ rows: recorded, bodies }: RecordedTurn, replayed: readonly TurnRow[]): unknown[] {
  if (recorded.length === 0 || replayed.length === 0) return [];
  const began = bodies.findLast((body) => isRecord(body) && body['kind'] === 'began');
  const { rows: current } = currentRows(recorded);
  const known = namesOf(current.filter((row) => !isLikeness(row)));
  const rows = [...namesOf(currentRows(replayed).rows).keys()].flatMap((name) => known.get(name) ?? []);
  // The recorded prompts had the terms that it names, whatever the replay has compared.
  return [began, ...current.filter(isLikeness), ...rows];
}

function isLikeness({ kind }: TurnRow): boolean {
  return kind === 'likeness';
}

/** By kind and key; those without a key by their place among those of their kind. */
function namesOf(rows: readonly TurnRow[]): Map<string, TurnRow> {
  const named = new Map<string, TurnRow>();
  const counts = new Map<string, number>();
  for (const row of rows) {
    const count = (counts.get(row.kind) ?? 0) + 1;
    counts.set(row.kind, count);
    named.set(`${row.kind} ${'key' in row ? row.key : count}`, row);
  }
  return named;
}

function asRecorded(effect: EffectRow, { bundleHash, evaluations }: RecordedTurn, staged: number): EffectRow {
  const { evaluations: _, ...inputs } = effect.inputs;
  return {
    ...effect,
    inputs: {
      ...inputs,
      bundleHash,
      ...(evaluations !== null && effect.kind === 'turn-step' && { evaluations }),
      ...('staged' in inputs && { staged }),
    },
  };
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null;
}
