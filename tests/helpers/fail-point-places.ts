import type { FailPoint } from '../../shared/fail-points.ts';

/** The point right before an await, the one right behind it, or the reason why it needs none. */
type Kept = { before?: FailPoint; after?: FailPoint } | string;

const READS = 'it only reads: whoever dies before it or behind it leaves the same world';
const INSIDE = 'what it changes has points of its own, where it is changed';
const CALLER = 'its caller has the point, right behind it';
const WAITS = 'it waits for what this process does elsewhere, where the points are';
const PAUSES = 'a pause before something is tried again, or looked at: the world stays as it was';
const STOPS = 'it ends what ends with the process anyway';
const LAYS = 'at a start, before this host owns anything; each statement leaves alone what is there';
const GIVES_BACK = 'it puts an item back, as the end of the lease does for a dead worker';
const BURIES = 'a dead letter is written once, however often its item comes; the item is settled behind it';
const LAST = 'as item.acked, of an item that was given up';
const ASKS = 'a request that changes nothing at the server';
const NOTES = 'a row that the next question about the server writes again';

/** What stands in the source, its first characters, and what is kept about it. In the order of the file: a new await in between is missed. */
export type AwaitRow = readonly [text: string, kept: Kept];

/** Every await of the files in which processes do what must not be lost or done twice. */
export const awaitsKept: Readonly<Record<string, readonly AwaitRow[]>> = {
  'actors/runtime/commit-loop.ts': [
    ['await this.#inHand.catch(() => {});', { after: 'partitions.let-go' }],
    ['await Promise.all(this.mailboxes.map((mailbox) => mailbox.stopReading())', STOPS],
    ['await this.#running;', WAITS],
    ['await this.#inHand;', { after: 'commit.told' }],
    ['await this.#inputOf(batch).catch((error: unknown) => ({ error }));', READS],
    ['await this.#apply(batch, input);', INSIDE],
    ['await this.#commit(batch.slice(0, middle));', INSIDE],
    ['await this.#commit(batch.slice(middle));', INSIDE],
    ['await this.#execute(planBurial(culprit, outcome.error, input));', INSIDE],
    ['await this.#execute(planBatch(batch, repeats, input));', INSIDE],
    ['await this.#store.findRepeats(batch, repeats))) return outcome;', READS],
    ['await this.#loadStates(batch);', READS],
    ['await this.#surroundings(batch, states), isHeld: this.isHeld, log: this.', READS],
    ['await this.#store.patiently(() => this.#deps.snapshots.load(ids));', READS],
    ['await this.#greetingOf(command.bundleHash));', READS],
    ['await this.#store.patiently(() => readRunFacts(this.#deps.runFacts, comm', READS],
    ['await this.#store.patiently(() => this.#deps.greetingOf(bundleHash));', READS],
    ['await this.#store.store(plan);', INSIDE],
  ],
  'actors/runtime/commit-store.ts': [
    ['await this.#measured(() => this.#database.query<{ owned: number[] }>(sta', { before: 'commit.sending', after: 'commit.stored' }],
    ['await this.#pause(pauseMs);', PAUSES],
    ['await this.patiently(() => this.#readBack(plan));', READS],
    ['await commit();', INSIDE],
    ['await this.#database.query<{ p: number; epoch: number; commit_no: number', READS],
    ['await this.patiently(() =>', READS],
    ['await read();', READS],
    ['await this.#pause(pauseMs);', PAUSES],
    ['await new Promise((resolve) => setTimeout(resolve, ms));', PAUSES],
  ],
  'actors/runtime/outbox.ts': [
    ['await database.query<OpenEffectRow>(SELECT_OPEN, [partitions]);', { after: 'take-over.effects-read' }],
    ['await database.query<OpenEffectRow>(SELECT_OPEN, [partitions]);', READS],
    ['await Promise.all(this.#running.values());', WAITS],
    ['await render(effect, wanted.republished);', { after: 'outbox.rendered' }],
    ['await bus.work.publish(workKinds[effect.kind], id, body);', { before: 'outbox.rendered', after: 'outbox.published' }],
  ],
  'actors/runtime/host.ts': [
    ['await this.#begin();', INSIDE],
    ['await this.#subscription.stop();', STOPS],
    ['await signOff(this.#deps.database, this.#deps.hostId).catch(() => {});', INSIDE],
    ['await this.#rounds;', WAITS],
    ['await this.#begin();', INSIDE],
    ['await this.#subscription?.stop();', STOPS],
    ['await this.#rounds;', WAITS],
    ['await this.#beating;', WAITS],
    ['await loop.letGo(loop.partitions);', INSIDE],
    ['await signOff(database, hostId);', INSIDE],
    ['await releasePartitions(database, claims);', INSIDE],
    ['.then(() => {})', WAITS],
    ['await beat(database, { hostId, machineVersion, bus: this.#contact.answer', INSIDE],
    ['await this.#contact.ask();', READS],
    ['await this.#beat();', INSIDE],
    ['await this.#beat();', INSIDE],
    ['await this.#giveBack(share);', INSIDE],
    ['await this.#take([...share.own].filter((partition) => !held.has(partitio', INSIDE],
    ['await this.#startLost();', READS],
    ['await loop.letGo(loop.partitions.filter((partition) => !kept.has(partiti', INSIDE],
    ['await releaseOutside(database, hostId, new Set([...own, ...kept]));', INSIDE],
    ['await Promise.all([bus.commands.state(), bus.work.begunAtMs()]);', READS],
    ['await takePartitions(database, { hostId, machineVersion, logCreated: cre', INSIDE],
    ['await outbox.load(database, taken, queueBegunAtMs);', INSIDE],
    ['await timers.load(database, taken);', INSIDE],
    ['await this.#start(taken, true);', { after: 'take-over.loaded' }],
    ['await this.#start(this.#deps.loop.partitions, false);', READS],
    ['await lostStarts(this.#deps.database, partitions, { evenFresh });', READS],
  ],
  'actors/runtime/ownership.ts': [
    ["await database.query(`insert into meta (key, value) values ('partition_c", LAYS],
    ['await database.query<{ value: string }>(`select value from meta where ke', LAYS],
    ['await database.query(`insert into parts (p) select generate_series(0, $1', LAYS],
    ['await database.query<{ p: number; epoch: number; commit_no: number; curs', { after: 'take-over.claimed' }],
    ['await database.query(', { after: 'leave.given-back' }],
    ['await database.query<{ p: number; epoch: number; commit_no: number; is_o', { after: 'partitions.given-back' }],
  ],
  'actors/runtime/heartbeat.ts': [
    ['await database.query<{ id: string; machine_v: number } & BusColumns & St', { after: 'heartbeat.written' }],
    [`await database.query('delete from hosts where id = $1', [hostId]);`, { after: 'leave.signed-off' }],
  ],
  'actors/runtime/timers.ts': [['await database.query<{ p: number; key: string; due_at: Date; command: st', { after: 'take-over.timers-read' }]],
  'actors/runtime/run-starts.ts': [['await database.query<{ id: string; p: number; session_id: string; tracep', READS]],
  'services/router-worker/consume-calls.ts': [
    ['await item.nak(ROOM_RETRY_MS * 2 ** (item.delivery - 1));', GIVES_BACK],
    ['await handle(item, leave !== null, deps);', INSIDE],
    ['await item.nak(FAULT_RETRY_MS);', GIVES_BACK],
    ['await begun : begun;', { after: 'call.taken' }],
    ['await settle(item, addressedCall, hasRoom, running, deps);', INSIDE],
    ['await patiently(() => isEffectOpen(database, call.callId), abortSignalOf', READS],
    ['await (isPlain ? make(execution, deps) : makeOnce(execution, framesAt, i', { after: 'call.made' }],
    [`await reportResult(call, call.reply, result, () => running.cause === 'ab`, { before: 'call.made' }],
    ['await item.ack();', { after: 'call.acked' }],
    [`await shownOf(item, call, replay) : 'nothing';`, READS],
    ['await buryCall(call, running, deps);', BURIES],
    ['await (call.reply === null ? buryItem(database, letter) : patiently(() =', BURIES],
    ['await replay());', READS],
  ],
  'services/router-worker/report-result.ts': [
    ['await deps.commands.append(partition, call.callId, body);', { after: 'call.reported' }],
    ['await after(RETRY_MS);', PAUSES],
  ],
  'services/effect-worker/consume-items.ts': [
    ['await settle(item, work, run, kind, deps);', { before: 'item.taken' }],
    ['await fail(item, work, run, error, kind, deps);', INSIDE],
    ['await patiently(() => isEffectOpen(deps.database, work.effectId), run.ab', READS],
    ['await traced(item, work, run, kind, deps);', { after: 'item.done' }],
    ['await reportResult(work, report, run.abandoned, { commands: deps.bus.com', { before: 'item.done' }],
    ['await item.ack();', { after: 'item.acked' }],
    ['await outcomeOf(item, { ...work, traceparent: span.traceparent }, run, k', INSIDE],
    ['await kind.giveUp(work, reasonOf(error), item.body, run);', BURIES],
    ['await reportResult(work, report, run.abandoned, { commands: bus.commands', INSIDE],
    ['await item.ack();', LAST],
  ],
  'services/effect-worker/report-result.ts': [
    ['await commands.append(partitionOf(sessionId), effectId, body);', { after: 'item.reported' }],
    ['await pause(RETRY_MS, undefined, { signal: abandoned }).catch(() => {});', PAUSES],
  ],
  'services/effect-worker/deliveries/deliver.ts': [
    ['await patiently(() => readDelivery(deps.database, deliveryId), run.signa', READS],
    ['await attemptOnce(work, found, run, deps);', INSIDE],
    ['await patiently(() => deps.bundles.read(found.bundleHash), run.signal);', READS],
    ['await patiently(() => countAttempt(database, deliveryId, maxAttempts), r', { after: 'delivery.counted' }],
    ['await posted(work, found, attempt, apiKey, run, deps);', { before: 'delivery.counted' }],
    ['await postCallback(deps.poster, found, { apiKey, attempt, traceparent, t', INSIDE],
    ['await patiently(() => readDelivery(database, deliveryId), run.signal);', READS],
    ['await patiently(() => readDelivery(database, deliveryId), run.abandoned)', READS],
  ],
  'services/effect-worker/deliveries/delivery-rows.ts': [
    ['await database.query(READ, [deliveryId]);', READS],
    ['await database.query<{ attempts: number }>(COUNT, [deliveryId, maxAttemp', CALLER],
  ],
  'services/effect-worker/deliveries/post-callback.ts': [
    ['await poster.post({ url: delivery.url, hostAllowlist: delivery.hostAllow', { after: 'delivery.posted' }],
  ],
  'services/effect-worker/tools/attempts.ts': [
    ['await attempt();', INSIDE],
    ['await pause(pauseMs, undefined, { signal }).catch(() => {', PAUSES],
    [`.then(resolve, reject).finally(() => signal.removeEventListener('abort',`, WAITS],
  ],
  'services/effect-worker/tools/call-tool.ts': [
    ['await patiently(() => bundles.read(work.bundleHash), run.signal);', READS],
    ['await patiently(() => lists.isRepeatable(work.listHash, toolName), run.s', READS],
    ['await patiently(() => claimCall(database, work.effectId), run.signal)))', { after: 'tool.claimed' }],
    ['await request(work, toolName, server, repeatable, claim, run, deps);', INSIDE],
    ['await claim();', INSIDE],
    [`await connection.request('tools/call', params, callAnswer, { signal, tim`, { after: 'tool.answered' }],
  ],
  'services/effect-worker/tools/claims.ts': [
    ['await database.query(TAKE, [effectId]);', CALLER],
    ['await database.query(LOOK, [effectId]);', READS],
  ],
  'services/effect-worker/tools/connection.ts': [
    ['await fetcher.watching(handshake.watch, () => client.connect(transport,', ASKS],
    ['await client.close().catch(() => {});', STOPS],
    ['await fetcher.watching(watch, () => client.request({ method, params }, a', CALLER],
    ['await Promise.race([goodbye, new Promise((resolve) => setTimeout(resolve', STOPS],
    ['await client.close().catch(() => {});', STOPS],
  ],
  'services/effect-worker/tools/discover-tools.ts': [
    ['await running;', STOPS],
    ['await bundles.newest();', READS],
    ['await Promise.all(', INSIDE],
    ['await lists.current(bundle, id, { isProbe: true }) })),', INSIDE],
    ['await pause(missing > 0 ? pauseMs : LOOK_AGAIN_MS, undefined, { signal }', PAUSES],
  ],
  'services/effect-worker/tools/message-gate.ts': [['await nextTick();', WAITS]],
  'services/effect-worker/tools/read-tools.ts': [
    [`await connection.request('tools/list', cursor === null ? {} : { cursor }`, ASKS],
    ['await list.add(answer.tools, limits.signal)) ?? troubleOf(cursor, cursor', WAITS],
    ['await nextTick();', WAITS],
  ],
  'services/effect-worker/tools/slots.ts': [
    ['await this.#take(signal);', WAITS],
    ['await work();', INSIDE],
    ['await new Promise<void>((resolve, reject) => {', WAITS],
  ],
  'services/effect-worker/tools/tool-items.ts': [
    ['await measured(deps.metrics, () => callTool(work, run, deps)));', INSIDE],
    ['await patiently(() => isClaimed(deps.database, work.effectId), run.aband', READS],
    ['await patiently(() => buryItem(deps.database, letter), run.abandoned);', BURIES],
    ['await call();', INSIDE],
    ['await patiently(() => bundles.read(bundleHash), run.signal);', READS],
    ['await Promise.all(', INSIDE],
    ['await untilOver(', INSIDE],
    [`.then(resolve, reject).finally(() => signal.removeEventListener('abort',`, WAITS],
  ],
  'services/effect-worker/tools/tool-lists.ts': [
    ['await underWay.asking;', WAITS],
    ['await this.#read(listHash));', READS],
    ['await Promise.allSettled([...this.#underWay.values()].map(({ asking }) =', STOPS],
    ['await this.#freshHash(bundle.hash, serverId);', READS],
    ['await this.#fetch(server, isProbe);', ASKS],
    ['await this.#store(bundle.hash, serverId, tools) };', INSIDE],
    ['await this.#noteUnavailable(bundle.hash, serverId, unavailable);', NOTES],
    ['await this.#deps.database.query<{ list_hash: string }>(', READS],
    [`await database.query('insert into tool_lists (hash, tools) values ($1, $`, { after: 'tool-list.stored' }],
    ['await database.query(', NOTES],
    ['await this.#deps.database.query(', NOTES],
    [`await this.#deps.database.query<{ tools: unknown }>('select tools from t`, READS],
  ],
  'services/effect-worker/tools/tool-server.ts': [
    ['await this.#using(work);', INSIDE],
    ['await this.#held?.connection.close();', STOPS],
    ['await opening;', WAITS],
    ['await work(held.connection);', INSIDE],
    ['await openConnection({ ...this.#deps, onListChanged });', ASKS],
    ['await connection.close();', STOPS],
  ],
  'services/effect-worker/tools/tool-servers.ts': [
    ['await Promise.all([...this.#servers.values()].map((server) => server.clo', STOPS],
    ['await this.#fetcher.close();', STOPS],
  ],
  'services/effect-worker/tools/watched-fetch.ts': [
    ['await (watch === null ? watches.run(null, go) : go());', CALLER],
    ['await reader.read();', CALLER],
    ['for await (const slice of gate.pass(value)) {', WAITS],
    ['await next(controller)));', CALLER],
  ],
};
