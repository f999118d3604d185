import type { Socket } from 'node:net';

interface Tick {
  tasks: (() => void)[];
  /** Whether sockets that are written to now are uncorked first. */
  isLeaving: boolean;
  /** A handful: each bus has two connections. */
  corked: Socket[];
  /** Those that were written to while `isLeaving`. */
  first: Socket[];
}

/** For microtasks: `queueMicrotask` makes three more objects. */
const settled = Promise.resolve();

/** State of this tick; null before its first write. */
let tick: Tick | null = null;

/**
 * Runs a task at the end of this tick, before the corked writes leave. The task's own writes leave before those on other connections: they belong to the
 * tick, and their consequences may have been sent since. It must not throw.
 */
export function atTickEnd(task: () => void): void {
  current().tasks.push(task);
}

/** Corks the socket until the end of this tick. Call before each write. */
export function corkForTick(socket: Socket): void {
  const { corked, first, isLeaving } = current();
  if (!corked.includes(socket)) {
    socket.cork();
    corked.push(socket);
  }
  if (isLeaving) first.push(socket);
}

/** Uncorks this tick's writes in the next microtask. The task's writes leave with them, and first, as at the end of the tick. */
export function leaveNow(task: () => void): void {
  const leaving = current();
  leaving.isLeaving = true;
  task();
  // As in `end`.
  void settled.then(() => {
    uncork(leaving);
    leaving.isLeaving = false;
  });
}

function current(): Tick {
  if (tick === null) {
    tick = { tasks: [], isLeaving: false, corked: [], first: [] };
    setImmediate(end, tick);
  }
  return tick;
}

function end(ending: Tick): void {
  const { tasks } = ending;
  ending.isLeaving = true;
  for (const task of tasks.splice(0)) task();
  // The library writes in a microtask, which it has queued by now.
  void settled.then(() => {
    tick = null;
    uncork(ending);
    // Tasks that were added by tasks: they came too late for this tick.
    for (const task of tasks) atTickEnd(task);
  });
}

function uncork({ first, corked }: Tick): void {
  for (const socket of new Set([...first.splice(0), ...corked.splice(0)])) socket.uncork();
}
