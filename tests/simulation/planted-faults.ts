import type { Bus, WorkItem } from '../../bus/bus.ts';
import type { SimulationOptions } from './simulation.ts';

/** A source file of the product with one place changed. */
export interface Patch {
  /** Relative to the root of the repository. */
  file: string;
  /** Occurs in the file exactly once. */
  find: string;
  replace: string;
}

interface PlantedFault {
  name: string;
  /** A seed at which it was detected last. A change of the product may move it. */
  caughtAt: number;
  /** Where the fault is injected: in the model of a store, between a worker and its bus, or in a copy of the runtime's source. */
  options?: Omit<SimulationOptions, 'seed'>;
  patch?: Patch;
}

/** Faults that the design guards against, each injected by itself. The product has no code for them. */
export const plantedFaults: readonly PlantedFault[] = [
  { name: 'no check of owner and epoch', caughtAt: 27, options: { fence: { owner: false, epoch: false, commitNo: true } } },
  { name: 'no commit_no check', caughtAt: 42, options: { fence: { owner: true, epoch: true, commitNo: false } } },
  { name: 'work acked before its result is stored', caughtAt: 1, options: { busOfWorker: (bus) => withItems(bus, acked) } },
  {
    name: 'a notice before the commit',
    caughtAt: 1,
    patch: {
      file: 'actors/runtime/publish/outbox.ts',
      find: 'addDone(plan: CommitPlan, touch: (partition: number) => boolean): void {',
      replace:
        'addDone(plan: CommitPlan, touch: (partition: number) => boolean): void {\n    this.#notifyAfter({ replies: [], notices: plan.after.notices, aborts: [] } as unknown as AfterCommit, new Set(plan.partitions.keys()));',
    },
  },
  {
    name: 'a timer without a deterministic id',
    caughtAt: 4,
    patch: { file: 'actors/runtime/apply/command-plan.ts', find: 'commandId: key,', replace: 'commandId: this.inputs.newId(this.atMs),' },
  },
  {
    name: 'a due timer before the results that the log of an acquired partition has',
    caughtAt: 185,
    patch: {
      file: 'actors/runtime/apply/mailbox.ts',
      find: 'if (!this.#closed && !this.#held.hold(timer))',
      replace: 'if (!this.#closed)',
    },
  },
  {
    name: 'a timer that an earlier commit of its batch has disarmed',
    caughtAt: 140,
    patch: {
      file: 'actors/runtime/apply/commit-loop.ts',
      find: "entry.kind !== 'timer' || !this.#changedTimers.has(entry.key)",
      replace: 'entry.kind !== null',
    },
  },
  {
    name: 'a result accepted for a superseded call',
    caughtAt: 83,
    patch: {
      file: 'actors/tool-loop/asking.ts',
      find: 'event.callId === callIdOf(context)',
      replace: 'event.callId.startsWith(user.actorIdOf(context))',
    },
  },
  {
    name: 'a second reply that is checked, too',
    caughtAt: 3,
    patch: {
      file: 'actors/kinds/turn/check-states.ts',
      find: 'const { isToCheck: _, ...engine } = engineOf(context);',
      replace: 'const engine = engineOf(context);',
    },
  },
  {
    name: 'an effect marked as published before its publish',
    caughtAt: 5,
    patch: {
      file: 'actors/runtime/publish/outbox.ts',
      find: 'await bus.work.publish(workOf(effect.kind), id, body, queued?.earlierDeliveries ?? 0);',
      replace: 'this.#markDone(effect);\n      await bus.work.publish(workOf(effect.kind), id, body, queued?.earlierDeliveries ?? 0);',
    },
  },
  {
    name: 'a lost dispatch that is never sent again',
    caughtAt: 3,
    patch: { file: 'actors/runtime/publish/dispatched-effects.ts', find: 'onLost(effect);', replace: 'effect;' },
  },
  {
    name: 'a dispatched call marked as published',
    caughtAt: 1,
    patch: {
      file: 'actors/runtime/publish/outbox.ts',
      find: 'work.dispatch(DISPATCHED_KIND, effect.id, bytes);',
      replace: 'work.dispatch(DISPATCHED_KIND, effect.id, bytes);\n    this.#markDone(effect);',
    },
  },
  { name: 'redelivered work begun without reading its effect', caughtAt: 1693, options: { busOfWorker: (bus) => withItems(bus, unmarked) } },
  {
    name: 'a poison command that stops its partition',
    caughtAt: 2,
    patch: {
      file: 'actors/runtime/apply/plan-batch.ts',
      find: "addDeadLetter(plan, parsed, 'not a command for a session of this partition that this version knows');",
      replace: "throw new TypeError('what is this?');",
    },
  },
  {
    name: 'an event posted out of order',
    caughtAt: 4,
    patch: {
      file: 'services/effect-worker/deliveries/post-events.ts',
      find: 'for (const { offset, text } of page) {',
      replace: 'for (const { offset, text } of page.toReversed()) {',
    },
  },
  {
    name: 'a cursor that jumps',
    caughtAt: 4,
    patch: {
      file: 'actors/kinds/event-webhook/machine.ts',
      find: 'return Math.min(Math.max(nextOffset, cursor), scene.head);',
      replace: 'return Math.max(nextOffset, cursor, scene.head);',
    },
  },
  {
    name: 'a webhook that runs twice',
    caughtAt: 22,
    patch: {
      file: 'services/agent-gateway/webhooks/fan-out.ts',
      find: 'async #start({ webhook, key, body, parent }: Delivery, routines: readonly TriggerableRoutine[]): Promise<FannedOut> {',
      // A key of the request, in place of that of its bytes.
      replace:
        'async #start({ webhook, key: ofBytes, body, parent }: Delivery, routines: readonly TriggerableRoutine[]): Promise<FannedOut> {\n    const key = `${ofBytes}:${parent}`;',
    },
  },
  {
    name: 'a prompt from the memory of a host, with what was deleted',
    caughtAt: 5,
    patch: {
      file: 'actors/runtime/publish/histories.ts',
      find: 'for (const { sessionId } of [...changedEvents, ...deletedEvents]) this.#cached.delete(sessionId);',
      replace: '',
    },
  },
  {
    name: 'a deletion in one commit with what it deletes',
    caughtAt: 5,
    patch: {
      file: 'actors/runtime/apply/plan-batch.ts',
      find: 'const isChange = parsed.command !== null && changesLog(parsed.command);',
      replace: 'const isChange = parsed.command === null && changesLog !== undefined;',
    },
  },
  {
    name: 'an answer of a turn counted twice',
    caughtAt: 1,
    patch: {
      file: 'actors/kinds/turn/engine-states.ts',
      find: "enqueue({ type: 'stage', params: { seq: engine.stepCount, row: event.row } });",
      replace: "for (const seq of [0, 1]) enqueue({ type: 'stage', params: { seq: engine.stepCount + seq, row: event.row } });",
    },
  },
  {
    name: 'a reply from answers of before a message joined',
    caughtAt: 448,
    patch: { file: 'actors/engine/turn-row.ts', find: 'rows: rows.slice(at + 1)', replace: 'rows' },
  },
  {
    name: 'a matching call that is left out',
    caughtAt: 1,
    patch: {
      file: 'actors/engine/matching-phase.ts',
      find: 'return plan.batches.flatMap((batch) => {',
      replace: 'return plan.batches.slice(0, 1).flatMap((batch) => {',
    },
  },
  {
    name: 'a result of a tool counted twice in the log',
    caughtAt: 1,
    patch: {
      file: 'actors/kinds/turn/engine-states.ts',
      find: "if (event.fact) enqueue({ type: 'fact', params: { content: event.fact, id: null, metadata: {} } });",
      replace: "for (const _ of event.fact ? [0, 1] : []) enqueue({ type: 'fact', params: { content: event.fact, id: null, metadata: {} } });",
    },
  },
  {
    name: 'a stale pass that resolves',
    caughtAt: 12,
    patch: {
      file: 'actors/engine/decide.ts',
      find: 'if (forcing.length === 0 && doneSteps.size === 0) return composed(phase);',
      replace: 'if (forcing.length < 99) return composed(phase);',
    },
  },
  {
    name: 'a turn that decides before what was said is compared',
    caughtAt: 32,
    patch: {
      file: 'actors/engine/decide.ts',
      find: "!current.some(({ kind }) => kind === 'likeness')",
      replace: "current.some(({ kind }) => kind === 'likeness')",
    },
  },
  {
    name: 'a tool step that is skipped',
    caughtAt: 61,
    patch: {
      file: 'actors/engine/routines/plan-routine.ts',
      find: 'graph.nodes.get(node)?.tools.some((tool) => ranTools.has(tool)) === true;',
      replace: "graph.nodes.get(node)?.kind === 'tool';",
    },
  },
  {
    name: 'a message that begins a turn in manual mode',
    caughtAt: 20,
    patch: {
      file: 'actors/kinds/session/machine.ts',
      find: "event.post.turn !== null && context.mode === 'auto',",
      replace: 'event.post.turn !== null,',
    },
  },
  {
    name: 'a message that models see while it is being checked',
    caughtAt: 45,
    patch: {
      file: 'actors/engine/moderation/withheld.ts',
      find: "z.enum(['pending', 'unavailable'])",
      replace: "z.enum(['unavailable'])",
    },
  },
  {
    name: 'a failed check that passes',
    caughtAt: 17,
    patch: { file: 'actors/effects/moderation.ts', find: "data === undefined ? { type: 'unavailable' }", replace: "data === undefined ? { type: 'passed' }" },
  },
  {
    name: 'a reply to a message that could not be checked',
    caughtAt: 50,
    patch: { file: 'actors/kinds/session/message-checks.ts', find: "return verdict === 'unavailable' && marked !== null;", replace: 'return marked === null;' },
  },
  {
    name: 'a claim of a tool call that is not read',
    caughtAt: 1,
    // The delivery count does not show every redelivery: a broker's new leader may not know of the first delivery.
    patch: { file: 'services/effect-worker/tools/claims.ts', find: 'return rowCount === 1;', replace: 'return rowCount !== null;' },
  },
  { name: 'a call of a cancelled run that is claimed behind its owner’s read', caughtAt: 89, options: { withdrawal: 'read only' } },
  { name: 'a withdrawn call that a worker makes all the same', caughtAt: 89, options: { withdrawal: 'overridden' } },
  {
    name: 'a cancelled run that does not wait for a call that has begun',
    caughtAt: 5,
    patch: { file: 'actors/inputs/run-facts.ts', find: 'isClaimed: (effectId) => claimed.has(effectId),', replace: 'isClaimed: () => false,' },
  },
  {
    name: 'a command that counts as stored when its leader answers without a sequence',
    caughtAt: 23,
    patch: {
      file: 'bus/nats/connection/store-message.ts',
      find: 'if (error?.err_code === IN_PROCESS || (duplicate && seq === 0)) throw new InProcessError();',
      replace: 'if (error?.err_code === IN_PROCESS) throw new InProcessError();',
    },
  },
  { name: 'the message at the cursor not compared', caughtAt: 36, options: { comparesPositions: false } },
];

function withItems(bus: Bus, change: (item: WorkItem) => Promise<WorkItem>): Bus {
  const consume: Bus['work']['consume'] = (kind, options, handler) => bus.work.consume(kind, options, async (item) => handler(await change(item)));
  return { ...bus, work: { ...bus.work, consume } };
}

async function acked(item: WorkItem): Promise<WorkItem> {
  await item.ack();
  return item;
}

/** Every item looks like a first delivery. */
async function unmarked(item: WorkItem): Promise<WorkItem> {
  return { ...item, deliveryCount: 1, body: item.body.replace('"republished":true', '"republished":false') };
}
