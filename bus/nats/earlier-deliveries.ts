import { headers, type MsgHdrs } from '@nats-io/transport-node';

/** Says of a stored item how often it was handed to somebody before it was stored. Absent: never. */
const HEADER = 'Switchyard-Delivered';

/** Undefined: there is nothing to say. */
export function deliveryHeaders(times: number): MsgHdrs | undefined {
  if (times === 0) return undefined;
  const extraHeaders = headers();
  extraHeaders.set(HEADER, String(times));
  return extraHeaders;
}

export function earlierDeliveries(extraHeaders: MsgHdrs | undefined): number {
  const times = Number(extraHeaders?.get(HEADER) || 0);
  return Number.isSafeInteger(times) && times > 0 ? times : 0;
}
