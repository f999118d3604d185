import { headers, type MsgHdrs } from '@nats-io/transport-node';

/** How often a stored item was delivered before it was stored; absent for 0. */
const HEADER = 'Switchyard-Delivered';

export function deliveryHeaders(times: number): MsgHdrs | undefined {
  if (times === 0) return undefined;
  const extraHeaders = headers();
  extraHeaders.set(HEADER, String(times));
  return extraHeaders;
}

/** From the headers of a stored item; 0 without or with an invalid value. */
export function earlierDeliveries(extraHeaders: MsgHdrs | undefined): number {
  const times = Number(extraHeaders?.get(HEADER) || 0);
  return Number.isSafeInteger(times) && times > 0 ? times : 0;
}
