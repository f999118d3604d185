const HTTPS_PORT = 443;
const HTTP_PORT = 80;

/** Host and port of a base URL. */
export function addressOf(baseUrl: string): { address: string; port: number } {
  const { hostname, port, protocol } = new URL(baseUrl);
  return { address: hostname, port: port === '' ? (protocol === 'https:' ? HTTPS_PORT : HTTP_PORT) : Number(port) };
}
