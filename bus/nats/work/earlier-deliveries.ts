import { headers, type MsgHdrs } from '@nats-io/transport-node';

/** How often an item was delivered before it was stored; absent for 0. */
const HEADER = 'Switchyard-Delivered';

export function deliveryHeaders(times: number): MsgHdrs | undefined {
  if (times === 0) return undefined;
  const extraHeaders = headers();
  extraHeaders.set(HEADER, String(times));
  return extraHeaders;
}

/** 0 without a valid header. */
export function earlierDeliveries(extraHeaders: MsgHdrs | undefined): number {
  const times = Number(extraHeaders?.get(HEADER) || 0);
  return Number.isSafeInteger(times) && times > 0 ? times : 0;
}
