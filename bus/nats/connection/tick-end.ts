import type { Socket } from 'node:net';

interface Tick {
  tasks: (() => void)[];
  /** Sockets written to now are uncorked first. */
  isLeaving: boolean;
  /** A handful: two connections per bus. */
  corked: Socket[];
  /** Written to while `isLeaving`. */
  first: Socket[];
}

/** For microtasks: `queueMicrotask` makes three more objects. */
const settled = Promise.resolve();

/** This tick; null before its first write. */
let tick: Tick | null = null;

/**
 * Runs a task at the end of this tick, before corked writes leave. Its own writes leave before other connections': consequences of the tick may have been
 * sent there since. It must not throw.
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

/** Uncorks this tick's writes in the next microtask. The task's writes leave with them, and first. */
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
  // The library has queued the microtask in which it writes.
  void settled.then(() => {
    tick = null;
    uncork(ending);
    // Added by tasks: too late for this tick.
    for (const task of tasks) atTickEnd(task);
  });
}

function uncork({ first, corked }: Tick): void {
  for (const socket of new Set([...first.splice(0), ...corked.splice(0)])) socket.uncork();
}
