import { render } from 'preact';
import { RouterConsole } from './router-console.tsx';

const page = document.getElementById('page');
if (page !== null) {
  page.replaceChildren();
  render(<RouterConsole title={document.title} />, page);
}
