import type { SessionCommand } from '../../bus/messages/session.ts';
import type { ConversationEvent } from '../../shared/contracts/agent/conversation-event.ts';
import { checkCancelledRuns } from './cancelled-run-rules.ts';
import { checkEvents } from './event-rules.ts';
import { checkModes } from './mode-rules.ts';
import type { Row } from './model-rows.ts';
import { checkModeration } from './moderation-rules.ts';
import type { Simulation } from './simulation.ts';
import { checkTurns } from './turn-rules.ts';
import { checkToolsOfTurns } from './turn-tool-rules.ts';

/** The allowed sequences of a turn's and a run's events, without the messages. Each ends in one `ready`. */
const TURN =
  /^acknowledged ((error|cancelled)|typing (assistant_message|error|cancelled)|processing\/matching( processing\/tools( tool)*( processing\/matching)?| processing\/retrieving( processing\/matching)?)*( typing( tool)* assistant_message|( typing( tool)*)? (error|cancelled))) ready$/;
const RUN = /^acknowledged( processing\/thinking( processing\/tools tool)*( processing\/tools)?)?( error)? ready$/;

/** Compares what is stored, and what had an effect outside, with what was requested, once nothing is in flight any more. */
export function checkRules(simulation: Simulation): void {
  const logs = logsOf(simulation);
  for (const [id, log] of logs) checkLog(simulation, id, log);
  checkCommands(simulation, logs);
  checkToolEvents(simulation, logs);
  checkProvenance(simulation);
  checkRuns(simulation);
  checkCallbacks(simulation);
  checkWebhooks(simulation);
  checkTools(simulation);
  checkCancelledRuns(simulation, logs);
  checkModeration(simulation, logs);
  checkModes(simulation, logs);
  checkTurns(simulation);
  checkToolsOfTurns(simulation, logs);
  checkEvents(simulation);
  simulation.watch.logs.check();
  checkEffects(simulation, logs);
  checkNothingLeft(simulation);
}

type Logs = ReadonlyMap<string, readonly ConversationEvent[]>;

function logsOf({ model: { tables } }: Simulation): Logs {
  const logs = new Map<string, ConversationEvent[]>();
  for (const id of tables.sessions.keys()) {
    const rows = [...(tables.events.get(id)?.values() ?? [])].sort((left, right) => (left['off'] as number) - (right['off'] as number));
    logs.set(
      id,
      rows.map(({ body }) => JSON.parse(body as string) as ConversationEvent),
    );
  }
  return logs;
}

function isDeleted({ model }: Simulation, session: string): boolean {
  return model.tables.sessions.get(session)?.['deleted_at'] != null;
}

/** Dense offsets, one turn or run at a time, each with an allowed sequence and one `ready` at its end. */
function checkLog(simulation: Simulation, id: string, log: readonly ConversationEvent[]): void {
  const { watch, model } = simulation;
  if (isDeleted(simulation, id)) {
    if (log.length > 0) watch.breach('deleted', `${id} keeps events`);
    return;
  }
  const head = model.tables.sessions.get(id)?.['head'];
  if (log.length !== head || log.some((event, index) => event.offset !== index)) watch.breach('offsets', `of ${id} are not dense up to ${head}`);
  const traces = new Map<string, string[]>();
  let working: string | null = null;
  for (const event of log) {
    if (event.kind === 'user_message' || isInjected(event)) continue;
    if (working !== null && working !== event.trace_id) watch.breach('interleaved', `offset ${event.offset} of ${id} stands in the middle of another turn`);
    const word = event.kind === 'status' ? `${event.status}${event.stage === null ? '' : `/${event.stage}`}` : event.kind;
    working = word === 'ready' ? null : event.trace_id;
    traces.set(event.trace_id, [...(traces.get(event.trace_id) ?? []), word]);
  }
  for (const [trace, words] of traces) {
    if (!(trace.startsWith('f') ? RUN : TURN).test(words.join(' '))) watch.breach('one ready', `trace ${trace} in ${id} reads: ${words.join(' ')}`);
  }
}

/** Each command that the log still has was applied once, in its order. */
function checkCommands(simulation: Simulation, logs: Logs): void {
  const { watch } = simulation;
  const order = new Map<string, string[]>();
  const unsure = new Set<string>();
  for (const stored of watch.history) {
    const { command } = stored;
    if (command !== null && (stored.isLost || !watch.isApplied(stored))) unsure.add(command.commandId);
    if (command?.type !== 'message.post' || unsure.has(command.commandId)) continue;
    const texts = order.get(command.sessionId) ?? [];
    if (isAccepted(simulation, command) && !texts.includes(command.text)) order.set(command.sessionId, [...texts, command.text]);
  }
  for (const [id, log] of logs) {
    if (isDeleted(simulation, id)) continue;
    const texts = log.flatMap((event) => (event.kind === 'user_message' ? [event.text] : []));
    if (new Set(texts).size !== texts.length) watch.breach('once', `a message stands twice in ${id}: ${texts.join(', ')}`);
    const isSure = (text: string) => !unsure.has(text.replace('message ', ''));
    const [found, wanted] = [texts.filter(isSure), (order.get(id) ?? []).filter(isSure)];
    if (found.join() !== wanted.join()) watch.breach('order', `${id} holds ${found.join(', ')} where ${wanted.join(', ')} were accepted`);
  }
}

/** Each accepted tool result is in the log once, whatever was repeated. */
function checkToolEvents(simulation: Simulation, logs: Logs): void {
  const { watch } = simulation;
  const lost = new Set(watch.history.flatMap((stored) => (stored.isLost || !watch.isApplied(stored) ? (stored.command?.commandId ?? []) : [])));
  const sent = new Map<string, SessionCommand>();
  for (const { command } of watch.history) if (command?.type === 'tool-event.post' && !lost.has(command.commandId)) sent.set(command.commandId, command);
  for (const [id, log] of logs) {
    if (isDeleted(simulation, id)) continue;
    const keys = log.flatMap((event) => (isInjected(event) ? [String(event.metadata['idempotency_key'])] : []));
    if (new Set(keys).size !== keys.length) watch.breach('once', `a tool event stands twice in ${id}: ${keys.join(', ')}`);
    for (const command of sent.values()) {
      if (command.type !== 'tool-event.post' || command.sessionId !== id || !isAccepted(simulation, command)) continue;
      if (!keys.includes(String(command.metadata['idempotency_key']))) watch.breach('tool event', `${command.commandId} was accepted and is not in ${id}`);
    }
  }
}

function isInjected({ kind, source }: ConversationEvent): boolean {
  return kind === 'tool' && source === 'system';
}

function isAccepted({ model }: Simulation, { sessionId, commandId }: SessionCommand): boolean {
  return ((model.tables.seen.get(`${sessionId} ${commandId}`)?.['answer'] as string | null) ?? '').startsWith('{"ok":true');
}

/** Every applied command was sent. */
function checkProvenance({ watch, model }: Simulation): void {
  const sent = new Set(watch.history.flatMap(({ command }) => command?.commandId ?? []));
  for (const { session_id: session, command_id: id } of model.tables.seen.values()) {
    const command = id as string;
    if (!sent.has(command) && !watch.timerKeys.has(command) && !model.tables.runs.has(command)) {
      watch.breach('provenance', `${command} was applied to ${session}, and is neither a command that was sent nor a timer’s key`);
    }
  }
}

/** Every run is settled, its log agrees, and an ephemeral session is deleted after its run, with its customer. */
function checkRuns(simulation: Simulation): void {
  const { watch, model, gateway } = simulation;
  for (const { id, sessionId, ephemeral } of gateway.runs) {
    const row = model.tables.runs.get(id);
    if (row === undefined || row['completed_at'] === null) watch.breach('settled', `${id} is ${row?.['state']}`);
    if (ephemeral && model.tables.sessions.has(sessionId) && !isDeleted(simulation, sessionId)) watch.breach('ephemeral', `${sessionId} still exists`);
  }
  for (const customer of model.tables.customers.keys()) watch.breach('ephemeral', `${customer} still exists`);
  for (const { session_id: session, label } of model.tables.sessionLabels) {
    const record = model.tables.sessions.get(session as string)?.['record'] as string;
    if (!(JSON.parse(record) as { labels: unknown[] }).labels.includes(label)) watch.breach('labels', `${session} is listed under ${label}`);
  }
  for (const [run, rows] of model.tables.steps) {
    const numbers = rows.map(({ seq }) => seq as number).sort((left, right) => left - right);
    if (numbers.some((seq, index) => seq !== index)) watch.breach('transcript', `of ${run} is not dense: ${numbers.join(', ')}`);
  }
}

/** One callback per run, equal to its row; the bytes are the same at each try. */
function checkCallbacks({ watch, model, gateway, environment }: Simulation): void {
  for (const { id, hasCallback } of gateway.runs) {
    const rows = [...model.tables.deliveries.values()].flat().filter((row) => row['run_id'] === id);
    if (rows.length !== (hasCallback ? 1 : 0)) watch.breach('callback', `${id} has ${rows.length} callbacks`);
    for (const { body, state, id: deliveryId, attempts } of rows) {
      const { status } = JSON.parse(body as string) as { status: string };
      if (status !== model.tables.runs.get(id)?.['state']) watch.breach('callback', `of ${id} says ${status}`);
      const posts = environment.posts.filter((post) => post.deliveryId === deliveryId);
      if (posts.some((post) => post.body !== body)) watch.breach('callback', `of ${id} was posted with different bodies`);
      if (posts.length > (attempts as number)) watch.breach('callback', `of ${id} was posted ${posts.length} times, counted ${attempts}`);
      if (state === 'delivered' && posts.length === 0) watch.breach('callback', `of ${id} counts as delivered and was never posted`);
    }
  }
}

/** A delivery starts one run of each of its routines, however often it is sent, and every answer names these. It is stored with all of them. */
function checkWebhooks({ watch, model, gateway }: Simulation): void {
  const runs = [...model.tables.runs.values()];
  for (const { key, body, answers } of gateway.webhooks.deliveries) {
    const started = runs.filter(({ input }) => input === body);
    const routines = started.map((run) => run['routine_id']);
    if (new Set(routines).size !== routines.length) watch.breach('once', `${key} has started ${routines.join(', ')}`);
    const ids = started.map(({ id }) => id).sort();
    for (const answer of answers)
      if (answer.join() !== ids.join()) watch.breach('once', `${key} was answered with ${answer.join(', ')} and has ${ids.join(', ')}`);
  }
  for (const { key, matched } of model.tables.webhookDeliveries.values()) {
    const routines = runs.filter((run) => run['idempotency_key'] === key).map((run) => run['routine_id']);
    if (routines.sort().join() !== [...(matched as string[])].sort().join()) watch.breach('webhook', `${key} is stored with ${routines.join(', ')}`);
  }
}

interface ToolStep {
  role: string;
  tool_call_id?: string;
  tool_calls?: { id: string; function: { name: string; arguments: string } }[];
  result?: { data: { done?: string; error?: string } } | null;
}

/** A call that may happen once happened at most once, and its result in the run agrees. */
function checkTools({ watch, model, environment }: Simulation): void {
  for (const [key, times] of environment.toolEffects) if (key.startsWith('refund') && times > 1) watch.breach('once', `${key} happened ${times} times`);
  for (const [run, rows] of model.tables.steps) {
    const asked = new Map<string, string>();
    for (const { message } of [...rows].sort((left, right) => (left['seq'] as number) - (right['seq'] as number))) {
      const step = JSON.parse(message as string) as ToolStep;
      for (const { id, function: call } of step.tool_calls ?? []) asked.set(id, keyOf(call));
      if (step.role !== 'tool' || step.result == null) continue;
      const key = asked.get(step.tool_call_id ?? '') ?? '';
      const { done, error } = step.result.data;
      const times = environment.toolEffects.get(key) ?? 0;
      if (done !== undefined && (done !== key || times === 0)) watch.breach('tool', `${run} has a result of ${done}, but ${key} happened ${times} times`);
      if (error !== undefined && error !== 'outcome_unknown' && key.startsWith('refund') && times > 0)
        watch.breach('tool', `${run} has ${error} for ${key}, which happened`);
    }
  }
}

function keyOf({ name, arguments: text }: { name: string; arguments: string }): string {
  const { callId, n } = JSON.parse(text) as { callId?: string; n?: number };
  return `${name.replace('shop__', '')} ${callId} ${n}`;
}

/** A reply is that of the call that its turn waited for. */
function checkEffects({ watch, model }: Simulation, logs: Logs): void {
  for (const [id, rows] of model.tables.effects) if (rows.length > 1) watch.breach('once', `effect ${id} stands ${rows.length} times`);
  for (const [session, log] of logs) {
    for (const event of log) {
      if (event.kind !== 'assistant_message' || !event.id.startsWith('evt_')) continue;
      const [effect] = model.tables.effects.get(event.id.replace('evt_', 'trn_')) ?? [];
      if (effect?.['state'] !== 'done') watch.breach('superseded', `${event.id} of ${session} is the reply to a call that is ${effect?.['state']}`);
    }
  }
}

function checkNothingLeft({ watch, model: { tables }, gateway }: Simulation): void {
  for (const { key } of tables.timers.values()) watch.breach('left over', `timer ${key}`);
  for (const { id, source } of tables.deadLetters) {
    if (source === 'command' && !isPoison(gateway.poison, id as string)) watch.breach('left over', `dead letter ${id}`);
  }
  const letters = tables.deadLetters.filter(({ source }: Row) => source === 'delivery').map(({ id }) => id);
  if (new Set(letters).size !== letters.length) watch.breach('once', `a dead letter stands twice: ${letters.join(', ')}`);
}

function isPoison(poison: ReadonlySet<string>, id: string): boolean {
  return poison.has(id);
}
