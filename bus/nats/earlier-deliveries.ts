import { headers, type MsgHdrs } from '@nats-io/transport-node';

/** Says of a stored item how often it was handed to somebody before it was stored. Absent: never. */
const HEADER = 'Switchyard-Delivered';

/** Undefined: there is nothing to say. */
export function markDelivered(times: number): MsgHdrs | undefined {
  if (times === 0) return undefined;
  const marks = headers();
  marks.set(HEADER, String(times));
  return marks;
}

export function earlierDeliveries(marks: MsgHdrs | undefined): number {
  const times = Number(marks?.get(HEADER) || 0);
  return Number.isSafeInteger(times) && times > 0 ? times : 0;
}
