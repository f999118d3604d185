import type { AnyEventObject, MachineContext, ParameterizedObject } from 'xstate';
import { interruptedBy } from './asking.ts';
import { effectIdOf, overdueKeyOf } from './effect-ids.ts';
import { machineActions } from './machine-actions.ts';
import { overdueTimer } from './overdue-timer.ts';
import { nextIteration, type ToolUser } from './tool-user.ts';
import type { LoopContext, LoopFailure, ToolsListed } from './types.ts';

/** For all servers of a loop. Lets two workers in a row die with the item, each noticed when its lease expires (bus/renew-lease.ts). */
const TOOL_LIST_TIMEOUT_MS = 45_000;

/** The state that waits for the tool lists of the loop's servers, which stay fixed from then on. */
export function listing<Context extends MachineContext, Event extends AnyEventObject, Reply, Named extends ParameterizedObject>({
  states,
  actorIdOf,
  loopOf,
  keep,
  failed,
  interruptions,
}: ToolUser<Context, Event, Reply, Named>) {
  const { change, enqueued } = machineActions<Context, Event>();
  const listIdOf = (context: Context) => effectIdOf(actorIdOf(context), loopOf(context).effectNo);
  const isCurrent = ({ context, event }: { context: Context; event: ToolsListed }) => event.callId === listIdOf(context);
  const disarm = { type: 'disarm' as const, params: ({ context }: { context: Context }) => ({ key: overdueKeyOf(listIdOf(context)) }) };

  const list = enqueued<Event>(({ context, enqueue }) => {
    const loop = loopOf(context);
    const effectNo = loop.effectNo + 1;
    const id = effectIdOf(actorIdOf(context), effectNo);
    const deadlineAtMs = listDeadlineOf(loop);
    enqueue.assign(() => keep({ effectNo }));
    enqueue({ type: 'effect', params: { kind: 'tool-list', id, deadlineAtMs, servers: loop.servers } });
    enqueue({ type: 'timer', params: overdueTimer(id, deadlineAtMs, 'tool-list') });
  });
  const supersede = enqueued<Event>(({ context, enqueue }) => {
    const id = listIdOf(context);
    enqueue({ type: 'supersede', params: { id } });
    enqueue({ type: 'disarm', params: { key: overdueKeyOf(id) } });
  });

  return {
    entry: list,
    on: {
      ...interruptedBy(interruptions, supersede),
      'tools.listed': [
        {
          guard: ({ context, event }: { context: Context; event: ToolsListed }) =>
            isCurrent({ context, event }) && unlistedServerOf(loopOf(context), event) === undefined && (event.missingTool ?? null) === null,
          target: states.asking,
          actions: [disarm, change<ToolsListed>(({ context, event }) => keep({ lists: event.lists, ...nextIteration(loopOf(context)) }))],
        },
        // Without some of its tools the model might end the loop on incomplete data, unnoticed. A server lost later, during a call, fails it as well.
        {
          guard: isCurrent,
          target: states.failed,
          actions: [
            disarm,
            change<ToolsListed>(({ context, event }) => ({
              ...keep({ unavailable: event.unavailable }),
              ...failed(context, unlistedFailure(loopOf(context), event)),
            })),
          ],
        },
      ],
    },
  };
}

function listDeadlineOf({ deadlineAtMs, startedAtMs }: LoopContext): number {
  return Math.min(deadlineAtMs, startedAtMs + TOOL_LIST_TIMEOUT_MS);
}

function unlistedServerOf({ servers }: LoopContext, { lists }: ToolsListed): string | undefined {
  return servers.find((server) => !Object.hasOwn(lists, server));
}

function unlistedFailure(loop: LoopContext, event: ToolsListed): LoopFailure {
  const server = unlistedServerOf(loop, event);
  if (server === undefined) return { type: 'tool-missing', toolId: event.missingTool ?? '' };
  // A worker's clock may be ahead of the host's: the cause decides, not the time.
  const atDeadline = event.timedOut && listDeadlineOf(loop) === loop.deadlineAtMs;
  return { type: 'server-unlisted', server, reason: event.unavailable[server] ?? 'unreachable', atDeadline };
}
