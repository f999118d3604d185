import type { EffectRow } from '#actors/effects/effect-row.ts';
import { type Evaluations, noEvaluations } from '#actors/engine/evaluation/evaluation-set.ts';
import type { RowOf } from '#actors/engine/turn-row.ts';
import { unknownCustomer } from '#actors/inputs/customer-reader.ts';
import type { FoundDocument } from '#bus/messages/found-document.ts';
import type { ListedTool } from '#bus/messages/tool.ts';
import { storeBundle } from '#shared/config/bundle-store.ts';
import type { Bundle } from '#shared/config/load-bundle.ts';
import type { Database } from '#shared/storage/database.ts';
import { silentLog } from '#shared/telemetry/log.ts';
import { Conversation, type MessageCheck, type RecordedAnswer, type ToolOutcome } from '../conversation/conversation.ts';
import { openModels } from '../conversation/open-models.ts';

const START_MS = Date.UTC(2026, 0, 1);
const LIST_HASH = 'list-of-the-shop';
const ORDER: ListedTool = {
  ...{ name: 'order', title: null, description: 'Looks up an order', repeatable: true },
  inputSchema: { type: 'object', properties: { id: { type: 'integer' } }, required: ['id'] },
};

interface Recorded {
  bundle: Bundle;
  /** Of the customer, a turn each. */
  texts: readonly string[];
  /** Of the tool's results. */
  metadata: Record<string, unknown>;
  /** What moderation finds in a text; absent or undefined: it is not checked. */
  checkOf?: ((text: string) => MessageCheck | undefined) | undefined;
  /** By each search; absent: searches are lost. */
  found?: readonly FoundDocument[];
  /** What vectors of its messages have shown; absent: its documents have no vectors. */
  likeness?: { evaluations: Evaluations; row: RowOf<'likeness'> };
}

/** Has a conversation with an agent, and stores what a deployment would have stored of it. */
export async function recordSession(database: Database, id: string, { bundle, texts, metadata, found, checkOf, likeness }: Recorded): Promise<void> {
  const { calls } = await openModels(bundle.body.manifest, 'manifest', { environment: {}, log: silentLog });
  const opened: EffectRow[] = [];
  const outcome: ToolOutcome = { type: 'result', data: { state: 'shipped' }, metadata, isError: false };
  const answers = {
    model: (call: Parameters<typeof calls.execute>[0]) => calls.execute(call),
    tool: () => outcome,
    recorded: async (effect: EffectRow) => {
      if (!opened.some((one) => one.id === effect.id)) opened.push(effect);
      if (effect.kind === 'embed-messages' && likeness !== undefined) return { type: 'row' as const, row: likeness.row };
      return found === undefined ? null : foundBy(effect, found);
    },
  };
  const tools = { hashes: { shop: LIST_HASH }, toolsOf: () => [ORDER] };
  const evaluations = likeness?.evaluations ?? noEvaluations;
  const conversation = new Conversation({ bundle, evaluations, tools, past: null, customer: unknownCustomer, answers }, START_MS);
  for (const [index, text] of texts.entries()) {
    const atMs = START_MS + (index + 1) * 60_000;
    // As where a colleague has handed the session back.
    conversation.goOnWith(evaluations, null, atMs);
    const check = checkOf?.(text);
    const post = { type: 'message' as const, source: 'customer' as const, text, metadata: {}, triggersTurn: true, ...(check && { check }) };
    await conversation.exchange([post], atMs);
  }
  await calls.close();
  const { session } = conversation;
  await storeBundle(database, bundle);
  await database.query('insert into tool_lists (hash, tools) values ($1, $2) on conflict do nothing', [LIST_HASH, JSON.stringify([ORDER])]);
  await database.query(
    `insert into sessions (id, p, head, machine_v, snapshot, record, created_at, updated_at) values ($1, 1, $2, 1, '{}', $3, now(), now())`,
    [id, session.log.length, JSON.stringify({ id, customer_id: 'cus_1' })],
  );
  for (const event of session.log) {
    const { offset, kind, source, trace_id: traceId } = event;
    const values = [id, offset, event.id, kind, source, traceId, JSON.stringify(event)];
    await database.query(
      'insert into events (session_id, off, id, kind, source, trace_id, body, created_at) values ($1, $2, $3, $4, $5, $6, $7, now())',
      values,
    );
  }
  // Ids of turns are counted in memory, and unique in a deployment.
  const named = (turnId: string) => `${turnId}-of-${id}`;
  for (const turnId of session.turnIds) {
    const end = session.log.find((event) => event.kind === 'assistant_message' && event.id.startsWith(turnId.replace('trn_', 'evt_')))?.offset ?? 0;
    for (const { seq, body } of session.stagedOf(turnId)) {
      await database.query('insert into turn_steps (turn_id, seq, session_id, off, body) values ($1, $2, $3, $4, $5)', [
        ...[named(turnId), seq, id, end - 1, JSON.stringify(body)],
      ]);
    }
  }
  for (const effect of opened) {
    const number = effect.id.slice(effect.actorId.length);
    await database.query(`insert into effects (id, p, session_id, turn_id, kind, state, inputs, created_at) values ($1, 1, $2, $3, $4, 'done', $5, now())`, [
      ...[`${named(effect.actorId)}${number}`, id, named(effect.actorId), effect.kind, JSON.stringify(effect.inputs)],
    ]);
  }
}

/** What the stages of a search have brought; null: it is none. */
function foundBy({ kind }: EffectRow, documents: readonly FoundDocument[]): RecordedAnswer | null {
  const ofModel = { model: 'openai/gpt-5', ms: 1, tokens: 2 };
  switch (kind) {
    case 'rewrite-query':
      return { type: 'row', row: { kind: 'query', key: 'query', ...ofModel, query: 'opening hours', failure: null } };
    case 'embed':
      return { type: 'row', row: { kind: 'embedding', key: 'embedding', ...ofModel, vector: 'AACAPwAAAAA=' } };
    case 'search':
      return { type: 'row', row: { kind: 'search', key: 'search', ms: 1, documents: [...documents], failure: null } };
    default:
      return null;
  }
}
