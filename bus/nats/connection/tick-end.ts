import type { Socket } from 'node:net';

interface Tick {
  tasks: (() => void)[];
  /** Sockets written to now are uncorked first. */
  isLeaving: boolean;
  /** A handful: two connections per bus. */
  corked: Socket[];
  /** Written to while `isLeaving`. */
  first: Socket[];
  /** Run behind the writes that leave next. */
  afterwards: (() => void)[];
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

/**
 * Runs a task behind the next `leaveNow`, the one that is running included, or behind the end of this tick: what was published before has then been passed to
 * the kernel, unless its buffer is full. It must not throw.
 */
export function afterWrites(task: () => void): void {
  current().afterwards.push(task);
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
  const afterwards = leaving.afterwards.splice(0);
  // As in `end`.
  void settled.then(() => {
    uncork(leaving);
    leaving.isLeaving = false;
    for (const one of afterwards) one();
  });
}

function current(): Tick {
  if (tick === null) {
    tick = { tasks: [], isLeaving: false, corked: [], first: [], afterwards: [] };
    setImmediate(end, tick);
  }
  return tick;
}

function end(ending: Tick): void {
  const { tasks } = ending;
  ending.isLeaving = true;
  for (const task of tasks.splice(0)) task();
  const afterwards = ending.afterwards.splice(0);
  // The library has queued the microtask in which it writes.
  void settled.then(() => {
    tick = null;
    uncork(ending);
    for (const one of afterwards) one();
    // Added by tasks: too late for this tick.
    for (const task of tasks) atTickEnd(task);
  });
}

function uncork({ first, corked }: Tick): void {
  for (const socket of new Set([...first.splice(0), ...corked.splice(0)])) socket.uncork();
}
