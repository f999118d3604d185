import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';

/** What the upstream does with its next requests; absent fields mean a healthy one. */
export interface EmbeddingReply {
  status?: number;
  body?: object;
  /** Of each vector; null: those of the request, or 4. */
  dimensions?: number | null;
  /** Vectors fewer than inputs. */
  missing?: number;
  /** Sends numbers whatever the request asks for. */
  sendsNumbers?: boolean;
  /** Sends no byte. */
  isSilent?: boolean;
}

interface EmbeddingRequestBody {
  model: string;
  input: (string | number[] | object)[];
  encoding_format?: string;
  dimensions?: number;
}

export interface EmbeddingUpstream {
  baseUrl: string;
  /** One per request; the last one repeats. */
  replyWith(...replies: EmbeddingReply[]): void;
  readonly requests: EmbeddingRequestBody[];
  /** Requests closed by the client before their answer. */
  readonly aborts: number;
  close(): Promise<void>;
}

/** POST /embeddings as npm openai 6.49.0 has it (CreateEmbeddingResponse). The vector of an input begins with its length. */
export async function openEmbeddingUpstream(): Promise<EmbeddingUpstream> {
  let replies: EmbeddingReply[] = [{}];
  const requests: EmbeddingRequestBody[] = [];
  let aborts = 0;
  const server = createServer((request, response) => {
    response.on('close', () => {
      if (!response.writableFinished) aborts += 1;
    });
    bodyOf(request).then(
      (body) => {
        requests.push(body);
        const [reply = {}] = replies.length > 1 ? replies.splice(0, 1) : replies;
        send(reply, body, response);
      },
      () => response.destroy(),
    );
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  return {
    baseUrl: `http://127.0.0.1:${typeof address === 'object' && address !== null ? address.port : 0}/v1`,
    replyWith(...next) {
      replies = next;
      requests.length = 0;
    },
    requests,
    get aborts() {
      return aborts;
    },
    close: () => {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      server.closeAllConnections();
      return closed;
    },
  };
}

async function bodyOf(request: IncomingMessage): Promise<EmbeddingRequestBody> {
  const pieces: Buffer[] = [];
  for await (const piece of request) pieces.push(piece);
  return JSON.parse(Buffer.concat(pieces).toString('utf8'));
}

function send(reply: EmbeddingReply, { model, input, encoding_format: format, dimensions }: EmbeddingRequestBody, response: ServerResponse): void {
  if (reply.isSilent === true) return;
  const { status = 200, missing = 0, sendsNumbers = false } = reply;
  const vectors = input.slice(missing).map((one) => vectorOf(one, reply.dimensions ?? dimensions ?? 4));
  const data = vectors.map((vector, index) => ({
    object: 'embedding',
    index,
    embedding: format === 'base64' && !sendsNumbers ? Buffer.from(Float32Array.from(vector).buffer).toString('base64') : vector,
  }));
  const tokens = input.reduce((sum: number, one) => sum + sizeOf(one), 0);
  const list = { object: 'list', model, data: data.toReversed(), usage: { prompt_tokens: tokens, total_tokens: tokens } };
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(reply.body ?? list));
}

/** Begins with the size of the input, which is also what is counted. */
export function vectorOf(input: string | number[] | object, dimensions: number): number[] {
  return Array.from({ length: dimensions }, (_, at) => (at === 0 ? sizeOf(input) : Math.fround(0.1 * at)));
}

function sizeOf(input: string | number[] | object): number {
  return typeof input === 'string' || Array.isArray(input) ? input.length : JSON.stringify(input).length;
}
