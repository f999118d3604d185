import type { Socket } from 'node:net';

interface Tick {
  tasks: (() => void)[];
  /** Whether what is sent now goes first. */
  isLeaving: boolean;
  /** A handful: each bus has two connections. */
  corked: Socket[];
  /** Those of them that were written to meanwhile. */
  first: Socket[];
}

/** What follows it runs behind all that waits to run now. `queueMicrotask` is the same, and makes three objects more. */
const settled = Promise.resolve();

/** What waits for the end of this turn of the event loop; null while nothing was sent in it. */
let tick: Tick | null = null;

/**
 * Runs at the end of this turn of the event loop, before what was sent in it leaves. What the task sends leaves with it, and before what
 * was sent on other connections: it was said in the turn, and what came of it may have been sent since. It must not throw.
 */
export function atTickEnd(task: () => void): void {
  current().tasks.push(task);
}

/** What is written to the socket from now on leaves together at the end of this turn of the event loop. To be said before each write. */
export function corkForTick(socket: Socket): void {
  const { corked, first, isLeaving } = current();
  if (!corked.includes(socket)) {
    socket.cork();
    corked.push(socket);
  }
  if (isLeaving) first.push(socket);
}

/** What was sent in this turn does not wait for its end. What the task sends leaves with it, and before it, as at the end. */
export function leaveNow(task: () => void): void {
  const leaving = current();
  leaving.isLeaving = true;
  task();
  // As below.
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
  // The library sends what it was given in a microtask, and has queued it by now.
  void settled.then(() => {
    tick = null;
    uncork(ending);
    // What the tasks themselves have led to came too late for them, and would wait for ever.
    for (const task of tasks) atTickEnd(task);
  });
}

function uncork({ first, corked }: Tick): void {
  for (const socket of new Set([...first.splice(0), ...corked.splice(0)])) socket.uncork();
}
