import { type ClientRequest, type IncomingMessage, request } from 'node:http';

/** A response as it arrives. */
interface ArrivingAnswer {
  status: number;
  headers: IncomingMessage['headers'];
  /** What has arrived so far. */
  readonly text: string;
  /** Resolves to true when the response has ended, to false when it was cut. */
  ended: Promise<boolean>;
  /** Closes the connection. */
  leave(): void;
  stopReading(): void;
  readOn(): void;
}

export interface PostedRequest {
  /** Rejects when the connection closes without a response. */
  answer: Promise<ArrivingAnswer>;
  leave(): void;
}

/** Posts on its own connection, and exposes the response as it arrives. */
export function post(url: string, body: unknown, headers: Record<string, string>): PostedRequest {
  const text = JSON.stringify(body);
  const sent: ClientRequest = request(url, {
    method: 'POST',
    agent: false,
    headers: { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text), ...headers },
  });
  const answer = new Promise<ArrivingAnswer>((resolve, reject) => {
    sent.on('error', reject);
    sent.on('response', (response) => resolve(arriving(response, () => sent.destroy())));
  });
  sent.end(text);
  return { answer, leave: () => sent.destroy() };
}

/** Gets on its own connection. A HEAD has no body: its connection closes behind the headers. */
export function get(url: string, headers: Record<string, string>, method: 'GET' | 'HEAD' = 'GET'): Promise<ArrivingAnswer> {
  return new Promise((resolve, reject) => {
    const sent: ClientRequest = request(url, { method, agent: false, headers });
    sent.on('error', reject);
    sent.on('response', (response) => resolve(arriving(response, () => sent.destroy())));
    sent.end();
  });
}

function arriving(response: IncomingMessage, leave: () => void): ArrivingAnswer {
  let text = '';
  response.setEncoding('utf8');
  response.on('data', (piece: string) => {
    text += piece;
  });
  const ended = new Promise<boolean>((resolve) => {
    response.on('end', () => resolve(response.complete));
    response.on('error', () => resolve(false));
    response.on('close', () => resolve(response.complete));
  });
  return {
    status: response.statusCode ?? 0,
    headers: response.headers,
    get text() {
      return text;
    },
    ended,
    leave,
    stopReading: () => response.pause(),
    readOn: () => response.resume(),
  };
}
