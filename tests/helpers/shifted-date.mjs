// Loaded before a program (`node --import`): its wall clock is wrong by SHIFT_DATE_MS. The monotonic clock and timers are not.
const shiftMs = Number(process.env.SHIFT_DATE_MS ?? 0);
const RealDate = Date;

globalThis.Date = new Proxy(RealDate, {
  construct: (target, args, newTarget) => Reflect.construct(target, args.length === 0 ? [target.now() + shiftMs] : args, newTarget),
  apply: (target) => new target(target.now() + shiftMs).toString(),
  get: (target, name, receiver) => (name === 'now' ? () => target.now() + shiftMs : Reflect.get(target, name, receiver)),
});
