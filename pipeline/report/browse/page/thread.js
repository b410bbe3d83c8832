// The pane of a thread: the article, the current comment with its scores and words, and all comments as a tree.

import {format, make} from "./charts.js";

// The text with the words that change its score marked; the deeper the mark, the larger the change
function markWords(text, words) {
  const parts = [], most = Math.max(...words.map(word => Math.abs(word.change)), 1e-9);
  let end = 0;
  for (const {word, change} of words) {
    const start = text.indexOf(word, end);
    if (start < 0) continue;
    const mark = make("mark", {textContent: word, className: change > 0 ? "more" : "less"});
    mark.title = `${change > 0 ? "+" : ""}${format(change)} with this word`;
    mark.style.setProperty("--share", `${Math.round(70 * Math.abs(change) / most)}%`);
    parts.push(text.slice(end, start), mark);
    end = start + word.length;
  }
  return [...parts, text.slice(end)];
}

function describe(comment, columns) {
  const scores = columns.filter(column => column.is_score && comment[column.name] !== null);
  return scores.map(column => `${column.label} ${format(comment[column.name])}`);
}

export function showThread(pane, thread, number, columns, {onOpen, onClose}) {
  const close = make("button", {textContent: "Close", onclick: onClose});
  const article = make("details", {open: true}, make("summary", {}, make("bdi", {textContent: thread.title || "Article"})),
    make("p", {className: "soft", dir: "auto", textContent: thread.text || "The article has no text."}));
  const current = thread.comments.find(comment => comment.n === number), words = current.words || [];
  const facts = make("dl");
  for (const column of columns.filter(field => current[field.name] !== null)) {
    facts.append(make("dt", {textContent: column.label}), make("dd", {textContent: format(current[column.name])}));
  }
  const items = new Map(thread.comments.map(comment => {
    const isChosen = comment.n === number;
    const text = isChosen ? make("p", {className: "chosen", dir: "auto"}, ...markWords(comment.text, words))
      : make("button", {className: "text", dir: "auto", textContent: comment.text, onclick: () => onOpen(comment.n)});
    const line = [...describe(comment, columns), `likes ${format(comment.likes)}`].join(" · ");
    const item = make("li", {}, text, isChosen ? facts : make("p", {className: "soft", textContent: line}));
    if (isChosen) item.setAttribute("aria-current", "true");
    return [comment.n, item];
  }));
  const tree = make("ul", {className: "tree"});
  for (const comment of thread.comments) {
    const item = items.get(comment.n), parent = items.get(comment.parent);
    if (!parent || item.contains(parent)) {
      tree.append(item);
    } else {
      if (parent.lastChild.tagName !== "UL") parent.append(make("ul"));
      parent.lastChild.append(item);
    }
  }
  const rest = thread.count - thread.comments.length;
  const colours = words.length ? make("p", {className: "soft"}, make("mark", {className: "more key", textContent: "adds"}),
    " and ", make("mark", {className: "less key", textContent: "takes from"}), " the score") : "";
  pane.replaceChildren(make("p", {className: "top"}, make("strong", {textContent: `Thread of ${format(thread.count)}`}), close),
    article, colours, tree, rest > 0 ? make("p", {className: "soft", textContent: `${format(rest)} more comments`}) : "");
}
