// Copies of tables: the text is shown and selected, and put on the clipboard where the browser lets it.
for (const copy of document.querySelectorAll("details.copy")) {
  const text = copy.querySelector("textarea"), link = copy.querySelector("a"), status = copy.querySelector("[role=status]");
  link.href = `data:${copy.dataset.type};charset=utf-8,${encodeURIComponent(text.value)}`;
  link.hidden = false;
  copy.querySelector("summary").addEventListener("click", async event => {
    event.preventDefault();
    copy.open = !copy.open;
    status.textContent = "";
    if (!copy.open) return;
    text.focus();
    text.select();
    let copied = false;
    try { copied = document.execCommand("copy"); } catch {}
    if (!copied) try { await navigator.clipboard.writeText(text.value); copied = true; } catch {}
    status.textContent = copied ? "Copied." : "Selected: copy it with Ctrl+C or \u2318C.";
  });
}
